%% The application: starts the store and the supervisor.
-module(objects_app).
-behaviour(application).

-export([start/2, stop/1]).

start(_Type, _Arguments) ->
    #{listen := Listen, port := Port} = Settings = objects_settings:get(),
    ok = objects_store:start(Settings),
    case objects_sup:start_link(Settings) of
        {error, {shutdown, {failed_to_start_child, objects_http, Reason}}} ->
            Fault = "cannot listen on ~s:~b: ~s",
            objects_main:refuse(io_lib:format(Fault, [inet:ntoa(Listen), Port, inet:format_error(Reason)]));
        Started ->
            Started
    end.

stop(_State) ->
    ok.
