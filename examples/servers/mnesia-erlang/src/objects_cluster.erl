%% Keeps this node in its cluster: finds the members, creates or joins the table, and forgets removed members.
-module(objects_cluster).
-behaviour(gen_server).

-export([flush/0, members/0, node_at/1, readiness/0, start_link/1]).
-export([handle_call/3, handle_cast/2, handle_info/2, init/1]).

%% Interval of the check if this node has the table, and if it does not.
-define(CALM_MILLISECONDS, 1000).
-define(EAGER_MILLISECONDS, 200).
%% Time limit for the answers of other members.
-define(ASK_MILLISECONDS, 2000).
%% Number of checks in a row that must find another cluster before this node leaves its own. One check is not enough,
%% because not every member knows a new member at once.
-define(PARTED, 3).

-record(state, {
    %% The last known addresses of each host.
    resolved = #{} :: #{string() => [inet:ip4_address()]},
    %% The nodes with the table in the last log message.
    told = [] :: [node()],
    %% Number of checks in a row that found another cluster with precedence.
    parted = 0 :: non_neg_integer(),
    %% Logged faults that still exist: of a host that cannot be resolved, or of entering the cluster.
    faults = #{} :: #{string() | entering => iodata()}
}).

start_link(Settings) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Settings, []).

node_at(Address) ->
    list_to_atom("app@" ++ inet:ntoa(Address)).

%% The addresses of the members that have the table.
-spec members() -> [binary()].
members() ->
    [name(Node) || Node <- ordered(objects_store:copies())].

%% Whether all members have the table.
-spec readiness() -> ready | {waiting, iodata()}.
readiness() ->
    #{count := Count} = objects_settings:get(),
    Copies = objects_store:copies(),
    case length(Copies) of
        Enough when Enough >= Count ->
            ready;
        Few ->
            Known = application:get_env(objects, members, []),
            Without = [name(Node) || Node <- Known -- Copies],
            {waiting, [
                io_lib:format("~b of ~b members have the table", [Few, Count]),
                [["; not yet: ", lists:join(", ", Without)] || Without =/= []],
                [io_lib:format("; ~b addresses are known", [length(Known)]) || length(Known) < Count]
            ]}
    end.

%% Waits until the other members have received this member's messages, because asynchronous modes answer before they
%% send.
flush() ->
    _ = erpc:multicall(nodes(), erlang, node, [], ?ASK_MILLISECONDS),
    ok.

init(Settings) ->
    self() ! look,
    {ok, {Settings, #state{}}}.

handle_call(_, _, State) -> {noreply, State}.

handle_cast(_, State) -> {noreply, State}.

handle_info(look, {Settings, State}) ->
    Looked = tell(look(Settings, State)),
    Wait =
        case objects_store:copies() of
            [] -> ?EAGER_MILLISECONDS;
            _ -> ?CALM_MILLISECONDS
        end,
    erlang:send_after(Wait, self(), look),
    {noreply, {Settings, Looked}};
handle_info(_, State) ->
    {noreply, State}.

look(#{peers := []}, State) ->
    case objects_store:copies() of
        [] -> ok = objects_store:form([node()]);
        [_] -> ok
    end,
    State;
look(#{peers := Hosts, count := Count}, State) ->
    Resolved = lists:foldl(fun resolve/2, State, Hosts),
    Addresses = lists:usort(lists:append(maps:values(Resolved#state.resolved))),
    Known = [node_at(Address) || Address <- Addresses],
    application:set_env(objects, members, Known),
    %% In separate processes, because a connection to a node that does not answer takes seconds.
    [spawn(net_kernel, connect_node, [Node]) || Node <- Known -- [node() | nodes()]],
    Connected = [Node || Node <- nodes(), lists:member(Node, Known)],
    case objects_store:copies() of
        [] -> enter(Known, Connected, Count, Resolved);
        Copies -> attend(Known, Connected, Copies, Resolved)
    end.

%% Resolves the host. If that fails, the host keeps its last addresses.
resolve(Host, #state{resolved = Resolved} = State) ->
    case inet:getaddrs(Host, inet) of
        {ok, Addresses} ->
            right(Host, State#state{resolved = Resolved#{Host => Addresses}});
        {error, Reason} ->
            wrong(Host, io_lib:format("cannot resolve ~ts: ~s", [Host, inet:format_error(Reason)]), State)
    end.

%% This node does not have the table. If another member has it, this node gets a copy. If no member has it and all
%% members are connected, the first member creates it.
enter(Known, Connected, Count, State) ->
    Asked = ask(Connected),
    Members = [Node || Node <- Known, Node =:= node() orelse lists:member(Node, Connected)],
    Entered =
        case [Copies || {_, {ok, [_ | _] = Copies}} <- Asked] of
            [_ | _] = Clusters ->
                [Copies | _] = lists:sort(fun precedes/2, Clusters),
                alone([node() | Copies], fun() -> objects_store:join(Copies) end);
            [] when hd(Members) =:= node(), length(Members) >= Count ->
                alone(Members, fun() -> form(Members) end);
            [] ->
                not_yet
        end,
    case Entered of
        {error, Reason} -> wrong(entering, io_lib:format("cannot enter the cluster: ~0tp", [Reason]), State);
        _ -> right(entering, State)
    end.

form(Members) ->
    %% Asked again under the lock, because no other node can create the table now. A node that does not answer may have
    %% the table.
    case [Node || {Node, Answer} <- ask(Members -- [node()]), Answer =/= {ok, []}] of
        [] -> objects_store:form(Members);
        _ -> not_yet
    end.

%% This node has the table. If the network was cut, other nodes may have another table, and Mnesia does not merge the
%% two. The larger cluster keeps its table. The members of the other cluster drop theirs and join.
attend(Known, Connected, Copies, State) ->
    Others = [Theirs || {_, {ok, [_ | _] = Theirs}} <- ask(Connected -- Copies), not lists:member(node(), Theirs)],
    case lists:any(fun(Theirs) -> precedes(Theirs, Copies) end, Others) of
        true when State#state.parted + 1 >= ?PARTED ->
            logger:warning("parted from the larger part of the cluster: dropping the table and joining that part"),
            ok = objects_store:leave(),
            State#state{parted = 0};
        true ->
            State#state{parted = State#state.parted + 1};
        false ->
            forget(Known, Copies),
            State#state{parted = 0}
    end.

%% The first member with the table forgets members that are gone and have no address any more.
forget(Known, Copies) ->
    Gone = objects_store:absent() -- Known,
    case ordered(Copies) of
        [First | _] when First =:= node(), Gone =/= [] ->
            alone(Copies, fun() -> lists:foreach(fun forget/1, Gone) end);
        _ ->
            ok
    end.

forget(Node) ->
    case objects_store:forget(Node) of
        ok -> logger:notice("forgot ~s, which is no member's address any more", [name(Node)]);
        {error, Reason} -> logger:warning("cannot forget ~s: ~0tp", [name(Node), Reason])
    end.

%% Per node: the nodes with the table from this node's view.
ask(Nodes) ->
    lists:zip(Nodes, erpc:multicall(Nodes, objects_store, copies, [], ?ASK_MILLISECONDS)).

%% Whether the first cluster has precedence: it has more members, or equally many and the lowest address.
precedes(One, Other) ->
    {-length(One), address(hd(ordered(One)))} =< {-length(Other), address(hd(ordered(Other)))}.

%% Runs the change while no other node changes the cluster. If another node does, this node waits for its next check.
alone(Nodes, Change) ->
    global:trans({?MODULE, self()}, Change, Nodes, 0).

tell(#state{told = Told} = State) ->
    case ordered(objects_store:copies()) of
        Told ->
            State;
        Copies ->
            logger:notice("the table is at: ~s", [lists:join(", ", [name(Node) || Node <- Copies])]),
            State#state{told = Copies}
    end.

%% Logs a fault only when it is new.
wrong(What, Fault, #state{faults = Faults} = State) ->
    case Faults of
        #{What := Fault} ->
            State;
        #{} ->
            logger:warning("~ts", [Fault]),
            State#state{faults = Faults#{What => Fault}}
    end.

right(What, #state{faults = Faults} = State) ->
    State#state{faults = maps:remove(What, Faults)}.

ordered(Nodes) ->
    lists:sort(fun(One, Other) -> address(One) =< address(Other) end, Nodes).

address(Node) ->
    {ok, Address} = inet:parse_address(binary_to_list(name(Node))),
    Address.

name(nonode@nohost) ->
    <<"127.0.0.1">>;
name(Node) ->
    [_, Host] = string:split(atom_to_binary(Node), "@"),
    Host.
