-- wrk: pages from random places of a history. CURSORS names a file of request paths, one a line.
local paths = {}
for line in io.lines(os.getenv("PATHS")) do paths[#paths + 1] = line end
local key = os.getenv("KEY")
math.randomseed(7)
request = function()
  return wrk.format("GET", paths[math.random(#paths)], { ["authorization"] = "Bearer " .. key })
end
done = function(summary, latency)
  local bad = summary.errors.status + summary.errors.read + summary.errors.timeout + summary.errors.connect
  io.write(string.format("RESULT %d %d %d %d %d %d\n", summary.requests, summary.duration, bad,
    latency:percentile(50), latency:percentile(99), summary.bytes))
end
