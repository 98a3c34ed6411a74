%% An object in the table.
-record(object, {
    id :: binary(),
    %% 1 after creation, plus one per change.
    version :: pos_integer(),
    name :: binary(),
    text :: binary()
}).
