%% The settings in the environment.
-module(objects_settings).

-export([get/0, read/1]).

-define(MODES, ["transaction", "sync_transaction", "async_dirty", "sync_dirty"]).

%% Far more than a cluster of small nodes has.
-define(MAXIMUM_MEMBERS, 32).

-type settings() :: #{
    port := inet:port_number(),
    listen := inet:ip_address(),
    mode := transaction | sync_transaction | async_dirty | sync_dirty,
    %% Largest number of objects.
    maximum := pos_integer(),
    %% Hosts that resolve to the members' addresses; empty for a member that is alone.
    peers := [string()],
    %% Number of members in the cluster.
    count := pos_integer(),
    %% The member's own address.
    address => inet:ip4_address(),
    distribution_port := inet:port_number()
}.

-spec get() -> settings().
get() ->
    {ok, Settings} = application:get_env(objects, settings),
    Settings.

-spec read(fun((string()) -> string() | false)) -> {ok, settings()} | {error, iodata()}.
read(Variable) ->
    try
        {ok, maps:merge(alone(Variable), cluster(Variable))}
    catch
        throw:Fault -> {error, Fault}
    end.

alone(Variable) ->
    #{
        port => number(Variable, "PORT", 8080, 65535),
        listen => listen(Variable),
        mode => mode(Variable),
        maximum => number(Variable, "MAX_OBJECTS", 100_000, 100_000_000)
    }.

cluster(Variable) ->
    Count = number(Variable, "PEERS_COUNT", 1, ?MAXIMUM_MEMBERS),
    Common = #{count => Count, distribution_port => number(Variable, "ERL_DIST_PORT", 4370, 65535)},
    ok = cookie(Variable),
    case Variable("PEERS_HOST") of
        false when Count > 1 ->
            throw("PEERS_HOST is not set: give the host that resolves to the addresses of all members");
        false ->
            Common#{peers => []};
        Hosts ->
            Common#{peers => hosts(Hosts), address => own_address(Variable)}
    end.

number(Variable, Name, Default, Maximum) ->
    case Variable(Name) of
        false ->
            Default;
        Value ->
            case string:to_integer(Value) of
                {Number, ""} when hd(Value) =/= $+, Number >= 1, Number =< Maximum -> Number;
                _ -> wrong(Name, io_lib:format("a whole number from 1 to ~b", [Maximum]), Value)
            end
    end.

listen(Variable) ->
    case Variable("LISTEN_ADDRESS") of
        false ->
            {0, 0, 0, 0};
        Value ->
            case inet:parse_strict_address(Value) of
                {ok, Address} -> Address;
                {error, _} -> wrong("LISTEN_ADDRESS", "an IP address", Value)
            end
    end.

mode(Variable) ->
    case Variable("MODE") of
        false ->
            transaction;
        Value ->
            case lists:member(Value, ?MODES) of
                true -> list_to_atom(Value);
                false -> wrong("MODE", "transaction, sync_transaction, async_dirty or sync_dirty", Value)
            end
    end.

hosts(Value) ->
    Hosts = [string:trim(Host) || Host <- string:split(Value, ",", all)],
    case lists:member("", Hosts) of
        true -> wrong("PEERS_HOST", "a host, or hosts separated by commas", Value);
        false -> Hosts
    end.

own_address(Variable) ->
    case Variable("POD_IP") of
        false ->
            throw("POD_IP is not set: with PEERS_HOST, give the member's own IPv4 address");
        Value ->
            case inet:parse_ipv4strict_address(Value) of
                {ok, Address} -> Address;
                {error, _} -> wrong("POD_IP", "an IPv4 address", Value)
            end
    end.

%% Only checks the cookie. The virtual machine already has it from the command line.
cookie(Variable) ->
    Value = Variable("ERLANG_COOKIE"),
    case Value =:= false orelse re:run(Value, "^\\w[\\w-]{0,254}$", [dollar_endonly, {capture, none}]) of
        true -> ok;
        match -> ok;
        nomatch -> throw("ERLANG_COOKIE must be 1 to 255 letters, digits, - or _, and not begin with -")
    end.

-spec wrong(string(), iodata(), string()) -> no_return().
wrong(Name, Must, Value) ->
    throw(io_lib:format("~s must be ~s, not \"~ts\"", [Name, Must, Value])).
