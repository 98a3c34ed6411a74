#!/usr/bin/env bash
# A stand-in for fnirsi_logger.py with a FNIRSI meter: prints the program's columns at 5 W, 100 lines per second of the
# meter's clock. After the lines of second N it waits for the file $SEEN/N. The test creates the file once it has that
# second's message, so neither program needs a certain speed.
echo
echo "timestamp sample_in_packet voltage_V current_A dp_V dn_V temp_C_ema energy_Ws capacity_As"
line=0
while [ "$line" -lt 250 ]; do
  line=$((line + 1))
  millijoules=$((line * 50))
  printf '1657568%03d.%03d %d %7.5f %7.5f %5.3f %5.3f %6.3f %d.%03d000 %f\n' \
    "$((line / 100))" "$((line * 10 % 1000))" "$((line % 4))" 5.0 1.0 0.6 0.6 30.5 \
    "$((millijoules / 1000))" "$((millijoules % 1000))" 0
  [ "$((line % 100))" -eq 0 ] || continue
  tries=0
  until [ -e "$SEEN/$((line / 100))" ]; do
    tries=$((tries + 1))
    # The test has failed.
    [ "$tries" -lt 6000 ] || exit 1
    sleep 0.01
  done
done
