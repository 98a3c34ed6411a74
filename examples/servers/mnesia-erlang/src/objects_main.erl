%% The start of the program: arguments, settings, the node's name, and then the application.
-module(objects_main).

-export([refuse/1, start/0]).

start() ->
    case init:get_plain_arguments() of
        [] ->
            serve();
        Arguments ->
            case lists:any(fun(Argument) -> Argument =:= "-h" orelse Argument =:= "--help" end, Arguments) of
                true ->
                    io:put_chars(usage()),
                    halt(0);
                false ->
                    io:put_chars(standard_error, usage()),
                    halt(2)
            end
    end.

usage() ->
    "Stores objects in Mnesia, on one node or in a cluster of several nodes.\n"
    "\n"
    "Usage: mnesia-erlang\n"
    "\n"
    "POST /objects, GET /objects, GET, PUT and DELETE /objects/{id}, GET /mandelbrot, GET /healthz, GET /readyz,\n"
    "GET /stats\n"
    "\n"
    "Options:\n"
    "  -h, --help  Print help\n"
    "\n"
    "Environment:\n"
    "  PORT            TCP port to listen on (default 8080)\n"
    "  LISTEN_ADDRESS  IP address to listen on (default 0.0.0.0)\n"
    "  MODE            Mnesia's access mode: transaction, sync_transaction, async_dirty or sync_dirty\n"
    "                  (default transaction)\n"
    "  MAX_OBJECTS     largest number of objects (default 100000)\n"
    "\n"
    "Environment of a cluster:\n"
    "  PEERS_HOST      host that resolves to the addresses of all members, itself included; several hosts\n"
    "                  separated by commas. Without it, a member is alone\n"
    "  PEERS_COUNT     number of members in the cluster (default 1)\n"
    "  POD_IP          the member's own IPv4 address\n"
    "  ERL_DIST_PORT   TCP port for connections between members, the same for all (default 4370)\n"
    "  ERLANG_COOKIE   shared secret of the members, the same for all (default mnesia-erlang)\n".

serve() ->
    case objects_settings:read(fun os:getenv/1) of
        {ok, Settings} ->
            application:set_env(objects, settings, Settings),
            distribute(Settings),
            run(Settings);
        {error, Fault} ->
            refuse(Fault)
    end.

%% Sets the node's name. Mnesia uses it, so this runs before Mnesia starts.
distribute(#{peers := []}) ->
    ok;
distribute(#{address := Address, distribution_port := Port}) ->
    application:set_env(kernel, inet_dist_use_interface, Address),
    quietly(fun() ->
        case net_kernel:start(objects_cluster:node_at(Address), #{name_domain => longnames}) of
            {ok, _} ->
                ok;
            {error, _} ->
                refuse(io_lib:format(
                    "cannot listen on ~s:~b for the other members: in use, or no address of this machine",
                    [inet:ntoa(Address), Port]
                ))
        end
    end).

run(#{listen := Listen, port := Port}) ->
    {ok, _} = quietly(fun() -> application:ensure_all_started(objects, permanent) end),
    ok = objects_signal:install(),
    logger:notice("listening on ~s:~b", [inet:ntoa(Listen), Port]).

%% Silences OTP's reports during the start. Otherwise every process that ends because of a fault would log it.
quietly(Start) ->
    ok = logger:add_primary_filter(?MODULE, {fun logger_filters:domain/2, {stop, sub, [otp]}}),
    Result = Start(),
    ok = logger:remove_primary_filter(?MODULE),
    Result.

%% Prints the fault and ends the program with 1.
-spec refuse(iodata()) -> no_return().
refuse(Fault) ->
    io:put_chars(standard_error, [Fault, "\n"]),
    halt(1).
