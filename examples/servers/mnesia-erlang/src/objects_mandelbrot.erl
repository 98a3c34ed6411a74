%% The Mandelbrot set: pure compute.
-module(objects_mandelbrot).

-export([draw/3]).

%% Covers a grid over -2 to 1 and -1.5i to 1.5i, row by row. Counts for each point how often z^2 + c is applied before z
%% leaves the circle of radius 2. A point that reaches Iterations is inside. Returns the number of points inside, and
%% the CRC-32 of all counts as 16 bits each, the higher byte first.
-spec draw(pos_integer(), pos_integer(), 1..65535) -> {Inside :: non_neg_integer(), Checksum :: non_neg_integer()}.
draw(Width, Height, Iterations) ->
    rows(0, Width, Height, Iterations, 0, 0).

rows(Height, _, Height, _, Inside, Checksum) ->
    {Inside, Checksum};
rows(Y, Width, Height, Iterations, Inside, Checksum) ->
    Ci = -1.5 + 3.0 * Y / Height,
    Counts = [count(0.0, 0.0, -2.0 + 3.0 * X / Width, Ci, Iterations, 0) || X <- lists:seq(0, Width - 1)],
    InRow = length([Count || Count <- Counts, Count =:= Iterations]),
    Bytes = <<<<Count:16>> || Count <- Counts>>,
    rows(Y + 1, Width, Height, Iterations, Inside + InRow, erlang:crc32(Checksum, Bytes)).

count(_, _, _, _, Iterations, Iterations) ->
    Iterations;
count(Zr, Zi, Cr, Ci, Iterations, Count) ->
    Rr = Zr * Zr,
    Ii = Zi * Zi,
    case Rr + Ii > 4.0 of
        true -> Count;
        false -> count(Rr - Ii + Cr, 2.0 * Zr * Zi + Ci, Cr, Ci, Iterations, Count + 1)
    end.
