%% The HTTP server: paths, requests and answers.
-module(objects_http).

-export([drain/0, handle/1, start_link/1]).

-include("objects.hrl").

%% The largest body of a request.
-define(MAXIMUM_BODY_BYTES, 65536).
-define(MAXIMUM_BROWSED, 100).
-define(MAXIMUM_SIDE, 512).
-define(MAXIMUM_ITERATIONS, 1000).
%% Time limit for requests in flight.
-define(GRACE_MILLISECONDS, 1000).
%% Maximum time and bytes that a refused client may still send before the server cuts its connection.
-define(LINGER_MILLISECONDS, 1000).
-define(LINGER_BYTES, 1024 * 1024).

%% If this key is set, mochiweb closes the connection after the answer, and announces that in the answer.
-define(CLOSE, mochiweb_request_force_close).

start_link(#{listen := Listen, port := Port}) ->
    persistent_term:put({?MODULE, in_flight}, atomics:new(1, [])),
    persistent_term:put({?MODULE, stopping}, false),
    mochiweb_http:start_link([
        {name, ?MODULE},
        {ip, Listen},
        {port, Port},
        {nodelay, true},
        {backlog, 1024},
        %% The kernel's buffer size, because mochiweb's is too small to receive a body at once.
        {recbuf, undefined},
        {loop, {?MODULE, handle}}
    ]).

%% Stops accepting connections, and waits for the requests in flight.
drain() ->
    persistent_term:put({?MODULE, stopping}, true),
    ok = mochiweb_http:stop(?MODULE),
    await_none_in_flight(erlang:monotonic_time(millisecond) + ?GRACE_MILLISECONDS).

await_none_in_flight(Deadline) ->
    Late = erlang:monotonic_time(millisecond) > Deadline,
    case atomics:get(persistent_term:get({?MODULE, in_flight}), 1) of
        0 ->
            ok;
        _ when Late ->
            logger:notice("requests still in flight after ~b ms were cut", [?GRACE_MILLISECONDS]);
        _ ->
            timer:sleep(10),
            await_none_in_flight(Deadline)
    end.

handle(Request) ->
    InFlight = persistent_term:get({?MODULE, in_flight}),
    atomics:add(InFlight, 1, 1),
    try
        answer(Request)
    after
        atomics:sub(InFlight, 1, 1)
    end.

answer(Request) ->
    case body(Request) of
        {refused, Status, Fault} ->
            put(?CLOSE, true),
            respond(Request, refusal(Status, Fault)),
            linger(mochiweb_request:get(socket, Request));
        Body ->
            Method = mochiweb_request:get(method, Request),
            {Path, Query} = split(mochiweb_request:get(raw_path, Request)),
            respond(Request, route(Method, Path, Query, Body))
    end.

%% The whole body. If it cannot be read to its end, no other request can begin on the connection, so the server closes
%% it.
body(Request) ->
    try
        case mochiweb_request:get(body_length, Request) of
            undefined ->
                <<>>;
            Length when is_integer(Length), Length < 0 ->
                {refused, 400, "the body's length cannot be told"};
            Length when is_integer(Length), Length > ?MAXIMUM_BODY_BYTES ->
                too_large();
            _ ->
                mochiweb_request:recv_body(?MAXIMUM_BODY_BYTES, Request)
        end
    catch
        exit:{body_too_large, _} -> too_large();
        exit:{unknown_transfer_encoding, _} -> {refused, 501, "no transfer encoding but chunked is known here"};
        error:_ -> {refused, 400, "the body's length cannot be told"}
    end.

too_large() ->
    {refused, 413, io_lib:format("the body is larger than ~b bytes", [?MAXIMUM_BODY_BYTES])}.

%% Reads on after the answer. A connection that is closed with unread data is reset, and the client may lose the answer.
linger(Socket) ->
    _ = gen_tcp:shutdown(Socket, write),
    linger(Socket, erlang:monotonic_time(millisecond) + ?LINGER_MILLISECONDS, ?LINGER_BYTES).

linger(Socket, Deadline, Left) ->
    Wait = max(0, Deadline - erlang:monotonic_time(millisecond)),
    case gen_tcp:recv(Socket, 0, Wait) of
        {ok, Read} when byte_size(Read) < Left -> linger(Socket, Deadline, Left - byte_size(Read));
        _ -> ok
    end.

split(Target) ->
    case string:split(Target, "?") of
        [Path, Query] -> {Path, Query};
        [Path] -> {Path, ""}
    end.

route(Method, Path, Query, Body) ->
    case {resource(Path), Method} of
        {none, _} -> refusal(404, "there is nothing at this path");
        {objects, 'POST'} -> create(Body);
        {objects, Get} when Get =:= 'GET'; Get =:= 'HEAD' -> browse(Query);
        {{object, Id}, Get} when Get =:= 'GET'; Get =:= 'HEAD' -> found(objects_store:read(Id));
        {{object, Id}, 'PUT'} -> modify(Id, Body);
        {{object, Id}, 'DELETE'} -> deleted(objects_store:delete(Id));
        {mandelbrot, Get} when Get =:= 'GET'; Get =:= 'HEAD' -> mandelbrot(Query);
        {health, Get} when Get =:= 'GET'; Get =:= 'HEAD' -> fine();
        {readiness, Get} when Get =:= 'GET'; Get =:= 'HEAD' -> readiness();
        {stats, Get} when Get =:= 'GET'; Get =:= 'HEAD' -> stats();
        {Resource, _} -> not_allowed(Resource)
    end.

resource("/objects") ->
    objects;
resource("/objects/" ++ Id) when Id =/= [] ->
    case lists:member($/, Id) of
        true -> none;
        false -> {object, list_to_binary(mochiweb_util:unquote(Id))}
    end;
resource("/mandelbrot") ->
    mandelbrot;
resource("/healthz") ->
    health;
resource("/readyz") ->
    readiness;
resource("/stats") ->
    stats;
resource(_) ->
    none.

not_allowed(Resource) ->
    Methods =
        case Resource of
            objects -> "GET, HEAD, POST";
            {object, _} -> "GET, HEAD, PUT, DELETE";
            _ -> "GET, HEAD"
        end,
    {Status, Headers, Body} = refusal(405, ["only ", Methods, " is served here"]),
    {Status, [{"Allow", Methods} | Headers], Body}.

create(Body) ->
    with_fields(Body, fun(Name, Text) ->
        case objects_store:create(Name, Text) of
            {ok, #object{id = Id} = Object} ->
                {Status, Headers, Written} = json(201, fields(Object)),
                {Status, [{"Location", ["/objects/", Id]} | Headers], Written};
            Other ->
                found(Other)
        end
    end).

browse(Query) ->
    with_numbers(Query, [{"limit", 10, ?MAXIMUM_BROWSED}], fun([Limit]) ->
        case objects_store:browse(Limit) of
            {ok, Objects} -> json(200, {[{objects, [fields(Object) || Object <- Objects]}]});
            Other -> found(Other)
        end
    end).

modify(Id, Body) ->
    with_fields(Body, fun(Name, Text) -> found(objects_store:modify(Id, Name, Text)) end).

deleted({ok, _}) -> {204, [], []};
deleted(Other) -> found(Other).

found({ok, Object}) -> json(200, fields(Object));
found(missing) -> refusal(404, "there is no such object");
found(full) -> refusal(507, "no more objects are kept");
found({aborted, {no_exists, _}}) -> refusal(503, "this member does not have the table yet");
found({aborted, Reason}) -> refusal(503, io_lib:format("Mnesia aborted this: ~0tp", [Reason])).

fields(#object{id = Id, version = Version, name = Name, text = Text}) ->
    {[{id, Id}, {version, Version}, {name, Name}, {text, Text}]}.

mandelbrot(Query) ->
    Numbers = [
        {"width", 64, ?MAXIMUM_SIDE},
        {"height", 64, ?MAXIMUM_SIDE},
        {"iterations", 100, ?MAXIMUM_ITERATIONS}
    ],
    with_numbers(Query, Numbers, fun([Width, Height, Iterations]) ->
        {Inside, Checksum} = objects_mandelbrot:draw(Width, Height, Iterations),
        json(200,
            {[
                {width, Width},
                {height, Height},
                {iterations, Iterations},
                {inside, Inside},
                {checksum, Checksum}
            ]})
    end).

fine() ->
    {200, [{"Content-Type", "text/plain; charset=utf-8"}], "ok"}.

readiness() ->
    case objects_cluster:readiness() of
        ready -> fine();
        {waiting, Why} -> refusal(503, Why)
    end.

stats() ->
    json(200, {[{members, objects_cluster:members()} | objects_store:stats()]}).

%% Reads the two fields of an object in a body; other fields are ignored.
with_fields(Body, Act) ->
    try jiffy:decode(Body, [return_maps, dedupe_keys, copy_strings]) of
        #{<<"name">> := Name, <<"text">> := Text} when is_binary(Name), is_binary(Text) -> Act(Name, Text);
        #{<<"name">> := Name, <<"text">> := _} when is_binary(Name) -> no_object("text is not a string");
        #{<<"name">> := _, <<"text">> := _} -> no_object("name is not a string");
        #{<<"name">> := _} -> no_object("missing field `text`");
        #{} -> no_object("missing field `name`");
        _ -> no_object("it is not a JSON object")
    catch
        throw:_ -> no_object("it is not JSON");
        error:_ -> no_object("it is not JSON")
    end.

no_object(Fault) ->
    refusal(400, ["not an object: ", Fault]).

%% Reads the whole numbers of a query, each from 1 to its maximum; other parameters are ignored.
with_numbers(Query, Numbers, Act) ->
    Given = mochiweb_util:parse_qs(Query),
    try [number(Name, proplists:get_value(Name, Given), Default, Maximum) || {Name, Default, Maximum} <- Numbers] of
        Values -> Act(Values)
    catch
        throw:Fault -> refusal(400, Fault)
    end.

number(_, undefined, Default, _) ->
    Default;
number(Name, Value, _, Maximum) ->
    case string:to_integer(Value) of
        {Number, []} when hd(Value) =/= $+, Number >= 1, Number =< Maximum -> Number;
        _ -> throw(io_lib:format("~s must be a whole number from 1 to ~b", [Name, Maximum]))
    end.

refusal(Status, Fault) ->
    json(Status, {[{error, unicode:characters_to_binary(Fault)}]}).

json(Status, Value) ->
    {Status, [{"Content-Type", "application/json"}], jiffy:encode(Value)}.

respond(Request, {Status, Headers, Body}) ->
    %% Connections of HTTP/1.0 are closed, because mochiweb does not announce a kept connection to the client.
    case persistent_term:get({?MODULE, stopping}) orelse mochiweb_request:get(version, Request) < {1, 1} of
        true -> put(?CLOSE, true);
        false -> ok
    end,
    %% Otherwise mochiweb sends a long Server header.
    mochiweb_request:respond({Status, [{"Server", "mnesia-erlang"} | Headers], Body}, Request).
