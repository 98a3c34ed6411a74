#!/usr/bin/env bash
# A stand-in for fnirsi_logger.py with a FNIRSI meter: prints the program's columns, 100 lines per second, at 5 W.
echo
echo "timestamp sample_in_packet voltage_V current_A dp_V dn_V temp_C_ema energy_Ws capacity_As"
line=0
while [ "$line" -lt 250 ]; do
  line=$((line + 1))
  millijoules=$((line * 50))
  printf '1657568%03d.%03d %d %7.5f %7.5f %5.3f %5.3f %6.3f %d.%03d000 %f\n' \
    "$((line / 100))" "$((line * 10 % 1000))" "$((line % 4))" 5.0 1.0 0.6 0.6 30.5 \
    "$((millijoules / 1000))" "$((millijoules % 1000))" 0
  sleep 0.01
done
