// A chessboard with a pyramid of mirroring spheres above it, in the light of two lamps.
#version 3.7;
global_settings { assumed_gamma 1.0 max_trace_level 8 }
camera { location <0, 3.5, -9> look_at <0, 1.2, 0> angle 50 }
light_source { <-6, 9, -7> rgb 0.8 area_light <1, 0, 0>, <0, 0, 1>, 3, 3 }
light_source { <7, 5, -4> rgb 0.4 }
plane { y, 0 pigment { checker rgb 0.15 rgb 0.9 } finish { reflection 0.15 } }
#for (layer, 0, 3)
  #for (row, 0, 3 - layer)
    #for (column, 0, 3 - layer)
      sphere {
        <(column - (3 - layer) / 2) * 1.2, 0.6 + layer * 0.9, (row - (3 - layer) / 2) * 1.2>, 0.6
        pigment { rgb <0.4 + 0.15 * layer, 0.3 + 0.15 * row, 0.3 + 0.15 * column> }
        finish { reflection 0.35 specular 0.5 roughness 0.01 }
      }
    #end
  #end
#end
