-- FrugalityBenchmark follows kstatus: observedGeneration, and the conditions Ready, Reconciling and Stalled.
-- Ready is True only if the current generation has the verdict Pass. Stalled is True with every other verdict.
local hs = { status = "Progressing", message = "Waiting for the operator to see this generation" }

if obj.status == nil or obj.status.conditions == nil or obj.status.observedGeneration ~= obj.metadata.generation then
  return hs
end

local ready, stalled
for _, condition in ipairs(obj.status.conditions) do
  if condition.observedGeneration == obj.metadata.generation then
    if condition.type == "Ready" then
      ready = condition
    elseif condition.type == "Stalled" then
      stalled = condition
    end
  end
end

if ready == nil then
  return hs
end

hs.message = ready.reason .. ": " .. ready.message
if ready.status == "True" then
  hs.status = "Healthy"
elseif stalled ~= nil and stalled.status == "True" then
  hs.status = "Degraded"
elseif ready.reason == "Suspended" then
  hs.status = "Suspended"
end
return hs
