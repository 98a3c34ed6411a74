%% An object as the table has it.
-record(object, {
    id :: binary(),
    %% 1 when it is created, and one more at each change.
    version :: pos_integer(),
    name :: binary(),
    text :: binary()
}).
