%% Keeps this node in its cluster: who the members are, who makes the table, who joins it, and who has gone for good.
-module(objects_cluster).
-behaviour(gen_server).

-export([flush/0, members/0, node_at/1, readiness/0, start_link/1]).
-export([handle_call/3, handle_cast/2, handle_info/2, init/1]).

%% How often it looks after a node that has the table, and after one that has not.
-define(CALM_MILLISECONDS, 1000).
-define(EAGER_MILLISECONDS, 200).
%% How long other members may take to say what they have.
-define(ASK_MILLISECONDS, 2000).
%% How often in a row a member has to be found in another cluster: one that has just joined is not known everywhere.
-define(PARTED, 3).

-record(state, {
    %% The last addresses of each host that was resolved.
    resolved = #{} :: #{string() => [inet:ip4_address()]},
    %% The nodes that had the table when that was last logged.
    told = [] :: [node()],
    %% How often in a row another cluster was found that this node gives way to.
    parted = 0 :: non_neg_integer(),
    %% What is wrong, and was logged: with resolving a host, or with entering the cluster.
    faults = #{} :: #{string() | entering => iodata()}
}).

start_link(Settings) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Settings, []).

node_at(Address) ->
    list_to_atom("app@" ++ inet:ntoa(Address)).

%% The addresses of those that have the table.
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

%% Wait until the other members have got what this one has sent: asynchronous modes answer before it is sent.
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
    %% Aside, because it takes seconds where nobody answers.
    [spawn(net_kernel, connect_node, [Node]) || Node <- Known -- [node() | nodes()]],
    Connected = [Node || Node <- nodes(), lists:member(Node, Known)],
    case objects_store:copies() of
        [] -> enter(Known, Connected, Count, Resolved);
        Copies -> attend(Known, Connected, Copies, Resolved)
    end.

%% Its addresses as they are now. Where that fails, the last ones stay.
resolve(Host, #state{resolved = Resolved} = State) ->
    case inet:getaddrs(Host, inet) of
        {ok, Addresses} ->
            right(Host, State#state{resolved = Resolved#{Host => Addresses}});
        {error, Reason} ->
            wrong(Host, io_lib:format("cannot resolve ~ts: ~s", [Host, inet:format_error(Reason)]), State)
    end.

%% This node does not have the table. It gets a copy of it where there is one. Where nobody has it, and all members
%% are there, the first of them makes it.
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
    %% Asked again, now that nobody else makes it. One who does not answer may have it.
    case [Node || {Node, Answer} <- ask(Members -- [node()]), Answer =/= {ok, []}] of
        [] -> objects_store:form(Members);
        _ -> not_yet
    end.

%% This node has the table. Others that have another one, after the network between them was cut, do not come together
%% by themselves: the greater cluster stays, and the members of the other begin anew.
attend(Known, Connected, Copies, State) ->
    Others = [Theirs || {_, {ok, [_ | _] = Theirs}} <- ask(Connected -- Copies), not lists:member(node(), Theirs)],
    case lists:any(fun(Theirs) -> precedes(Theirs, Copies) end, Others) of
        true when State#state.parted + 1 >= ?PARTED ->
            logger:warning("parted from the greater part of the cluster: beginning anew"),
            ok = objects_store:leave(),
            State#state{parted = 0};
        true ->
            State#state{parted = State#state.parted + 1};
        false ->
            forget(Known, Copies),
            State#state{parted = 0}
    end.

%% The first of those who have the table forgets members that are gone and have no address any more.
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

%% The nodes that have the table, as each of these sees it.
ask(Nodes) ->
    lists:zip(Nodes, erpc:multicall(Nodes, objects_store, copies, [], ?ASK_MILLISECONDS)).

%% Of two clusters, which has more members; of the same size, which has the lowest address.
precedes(One, Other) ->
    {-length(One), address(hd(ordered(One)))} =< {-length(Other), address(hd(ordered(Other)))}.

%% While no other node changes who belongs to the cluster. Where one does, nothing is done until the next look.
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

%% A fault is logged when it is new, and not at each look.
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
