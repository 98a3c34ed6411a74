%% The table of objects. Each access is one Mnesia activity in the mode of the settings.
-module(objects_store).

-export([browse/1, create/2, delete/1, modify/3, read/1, start/1, stats/0]).
-export([absent/0, copies/0, forget/1, form/1, join/1, leave/0]).

-include("objects.hrl").

-define(TABLE, object).
-define(COUNTED, [create, browse, read, modify, delete, missing, aborted]).
%% Time limit for the arrival of a copy of the table.
-define(COPY_MILLISECONDS, 60_000).

-type answer(Value) :: {ok, Value} | missing | full | {aborted, term()}.

%% Prepares the counters, which must exist before the table.
start(#{mode := Mode, maximum := Maximum}) ->
    Counters = counters:new(length(?COUNTED), [write_concurrency]),
    persistent_term:put(?MODULE, {Mode, Maximum, Counters}).

%% Operations for clients.

-spec create(binary(), binary()) -> answer(#object{}).
create(Name, Text) ->
    {_, Maximum, _} = persistent_term:get(?MODULE),
    Object = #object{id = new_id(), version = 1, name = Name, text = Text},
    case size() < Maximum of
        true ->
            activity(create, fun() ->
                ok = mnesia:write(Object),
                {ok, Object}
            end);
        false ->
            full
    end.

-spec read(binary()) -> answer(#object{}).
read(Id) ->
    activity(read, fun() -> found(mnesia:read(?TABLE, Id)) end).

%% At most Limit objects, in no order.
-spec browse(pos_integer()) -> answer([#object{}]).
browse(Limit) ->
    activity(browse, fun() ->
        {ok, take(Limit, mnesia:select(?TABLE, [{'_', [], ['$_']}], Limit, read))}
    end).

-spec modify(binary(), binary(), binary()) -> answer(#object{}).
modify(Id, Name, Text) ->
    activity(modify, fun() ->
        case found(mnesia:read(?TABLE, Id, write)) of
            {ok, #object{version = Version}} ->
                Object = #object{id = Id, version = Version + 1, name = Name, text = Text},
                ok = mnesia:write(Object),
                {ok, Object};
            missing ->
                missing
        end
    end).

-spec delete(binary()) -> answer(#object{}).
delete(Id) ->
    activity(delete, fun() ->
        Found = found(mnesia:read(?TABLE, Id, write)),
        ok = mnesia:delete({?TABLE, Id}),
        Found
    end).

found([Object]) -> {ok, Object};
found([]) -> missing.

take(_, '$end_of_table') ->
    [];
take(Limit, {Objects, More}) ->
    case Limit - length(Objects) of
        Left when Left > 0 -> Objects ++ take(Left, mnesia:select(More));
        _ -> lists:sublist(Objects, Limit)
    end.

activity(Operation, Act) ->
    {Mode, _, _} = persistent_term:get(?MODULE),
    try mnesia:activity(Mode, Act) of
        missing ->
            count(missing),
            missing;
        Done ->
            count(Operation),
            Done
    catch
        exit:{aborted, Reason} ->
            count(aborted),
            {aborted, Reason}
    end.

%% Unique over all members, and not predictable.
new_id() ->
    binary:encode_hex(crypto:strong_rand_bytes(16)).

size() ->
    case lists:member(node(), copies()) of
        true -> mnesia:table_info(?TABLE, size);
        false -> 0
    end.

%% This member's counts since its start, as fields of JSON.
stats() ->
    {Mode, _, Counters} = persistent_term:get(?MODULE),
    Counts = [{Counted, counters:get(Counters, index(Counted))} || Counted <- ?COUNTED],
    {Operations, Others} = lists:split(5, Counts),
    [
        {mode, Mode},
        {objects, size()},
        {operations, {Operations}},
        {restarts, mnesia:system_info(transaction_restarts)}
        | Others
    ].

count(Counted) ->
    {_, _, Counters} = persistent_term:get(?MODULE),
    counters:add(Counters, index(Counted), 1).

index(create) -> 1;
index(browse) -> 2;
index(read) -> 3;
index(modify) -> 4;
index(delete) -> 5;
index(missing) -> 6;
index(aborted) -> 7.

%% Operations for the cluster.

%% The nodes with the table from this node's view. Empty if this node does not have it.
-spec copies() -> [node()].
copies() ->
    try mnesia:table_info(?TABLE, active_replicas) of
        Nodes ->
            case lists:member(node(), Nodes) of
                true -> Nodes;
                false -> []
            end
    catch
        exit:{aborted, _} -> []
    end.

%% Creates the table with a copy on each of these nodes. None of them may have a table yet.
-spec form([node()]) -> ok | not_yet | {error, term()}.
form(Nodes) ->
    Others = Nodes -- [node()],
    case mnesia:change_config(extra_db_nodes, Others) of
        {ok, Connected} when length(Connected) =:= length(Others) ->
            Options = [{ram_copies, Nodes}, {attributes, record_info(fields, ?TABLE)}],
            result(mnesia:create_table(?TABLE, Options));
        {ok, _} ->
            %% Mnesia is not yet running on all nodes.
            not_yet;
        {error, Reason} ->
            {error, Reason}
    end.

%% Gets a copy of the table from these nodes.
-spec join([node(), ...]) -> ok | not_yet | {error, term()}.
join(Nodes) ->
    case mnesia:change_config(extra_db_nodes, Nodes) of
        {ok, [_ | _]} ->
            case mnesia:add_table_copy(?TABLE, node(), ram_copies) of
                %% This node was a member before.
                {aborted, {already_exists, ?TABLE, _}} -> arrived();
                {atomic, ok} -> arrived();
                {aborted, Reason} -> {error, Reason}
            end;
        {ok, []} ->
            not_yet;
        {error, Reason} ->
            {error, Reason}
    end.

arrived() ->
    case mnesia:wait_for_tables([?TABLE], ?COPY_MILLISECONDS) of
        ok -> ok;
        {timeout, _} -> {error, "the table does not come"};
        {error, Reason} -> {error, Reason}
    end.

%% Drops the copy of the table, and all information about other nodes.
leave() ->
    stopped = mnesia:stop(),
    ok = application:start(mnesia, permanent).

%% The nodes that had the table and are not running now.
absent() ->
    mnesia:system_info(db_nodes) -- mnesia:system_info(running_db_nodes).

%% Removes a node that does not come back.
forget(Node) ->
    result(mnesia:del_table_copy(schema, Node)).

result({atomic, ok}) -> ok;
result({aborted, Reason}) -> {error, Reason}.
