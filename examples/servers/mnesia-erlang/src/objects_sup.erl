%% Supervises two processes: the cluster process and the HTTP server.
-module(objects_sup).
-behaviour(supervisor).

-export([init/1, start_link/1]).

start_link(Settings) ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, Settings).

init(Settings) ->
    Cluster = #{id => objects_cluster, start => {objects_cluster, start_link, [Settings]}},
    %% Transient: the HTTP server stops listening while it waits for the requests in flight, and must not restart.
    Http = #{id => objects_http, start => {objects_http, start_link, [Settings]}, restart => transient},
    {ok, {#{strategy => one_for_one}, [Cluster, Http]}}.
