-- wrk asks for the targets of the file that TARGETS names, one after the other, again and again. With EACH_NEW every
-- request has another query, so that no cache has it; the router ignores what it does not know.
local requests = {}
local number = 0
local targets = {}
local isNew = os.getenv("EACH_NEW") ~= nil
local prefix = os.time() .. "-"

-- Not earlier: until here wrk does not know the host that every request names.
init = function()
  for line in io.lines(os.getenv("TARGETS")) do
    requests[#requests + 1] = wrk.format("GET", line)
    targets[#targets + 1] = line .. (line:find("?", 1, true) and "&" or "?") .. "new=" .. prefix
  end
end

local count = 0

request = function()
  number = number % #requests + 1
  if isNew then
    count = count + 1
    return "GET " .. targets[number] .. count .. " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
  end
  return requests[number]
end

done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"requests": %d, "seconds": %f, "p99_ms": %f, "errors": %d}\n', summary.requests,
    summary.duration / 1e6, latency:percentile(99) / 1000,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
