%% The Mandelbrot set: computing, and nothing else.
-module(objects_mandelbrot).

-export([draw/3]).

%% For each point of a grid over -2 to 1 and -1.5i to 1.5i, row by row, how often z^2 + c was applied before z left
%% the circle of radius 2: at most Iterations, which is a point inside. The result is how many points are inside, and
%% the CRC-32 of all numbers as 16 bits each, the higher byte first.
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
