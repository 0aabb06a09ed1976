-- wrk asks for the targets of the file that TARGETS names, one after the other, again and again.
local requests = {}
local number = 0

-- Not earlier: until here wrk does not know the host that every request names.
init = function()
  for line in io.lines(os.getenv("TARGETS")) do
    requests[#requests + 1] = wrk.format("GET", line)
  end
end

request = function()
  number = number % #requests + 1
  return requests[number]
end

done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"requests": %d, "seconds": %f, "p99_ms": %f, "errors": %d}\n', summary.requests,
    summary.duration / 1e6, latency:percentile(99) / 1000,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
