%% Ends the program on SIGTERM. Erlang's own handler would cut the requests in flight and take one second longer.
-module(objects_signal).
-behaviour(gen_event).

-export([install/0]).
-export([handle_call/2, handle_event/2, init/1]).

install() ->
    gen_event:swap_handler(erl_signal_server, {erl_signal_handler, []}, {?MODULE, []}).

init(_) ->
    {ok, none}.

%% The handler removes itself, so another SIGTERM changes nothing.
handle_event(sigterm, _) ->
    spawn(fun stop/0),
    remove_handler;
handle_event(_, State) ->
    {ok, State}.

handle_call(_, State) ->
    {ok, ok, State}.

stop() ->
    logger:notice("stopping: finishing the requests in flight"),
    ok = objects_http:drain(),
    ok = objects_cluster:flush(),
    ok = application:stop(objects),
    ok = application:stop(mnesia),
    halt(0).
