{application, objects, [
  {description, "Objects in Mnesia, on one node or several"},
  {vsn, "0.1.0"},
  {modules, [
    objects_app,
    objects_cluster,
    objects_http,
    objects_main,
    objects_mandelbrot,
    objects_settings,
    objects_signal,
    objects_store,
    objects_sup
  ]},
  {registered, [objects_cluster, objects_http, objects_sup]},
  %% mochiweb is not in the list, because the server uses it as a library and does not need its other applications.
  {applications, [kernel, stdlib, crypto, mnesia]},
  {mod, {objects_app, []}}
]}.
