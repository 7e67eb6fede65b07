-- The requests of wrk: `wrk -s wrk.lua URL -- read|add|mixed TAG ROWS`. Prints one line of JSON at the end.
-- TAG makes new NIMs and addresses different from those of earlier runs.

local threads = {}
local form = { ["Content-Type"] = "application/x-www-form-urlencoded" }

function setup(thread)
  table.insert(threads, thread)
end

local function add(tag)
  local n = 0
  redirects = 0
  request = function()
    n = n + 1
    return wrk.format("POST", "/mahasiswa/add", form,
      string.format("nim=%s%07d&nama=Siti+Rahmawati&alamat=Jl.+Merdeka+No.+%d%%2C+Bandung", tag, n, n))
  end
  response = function(status)
    if status == 302 then redirects = redirects + 1 end
  end
end

-- Every tenth request edits one of the rows in turn. The others read the list.
local function mixed(tag, rows)
  local n = 0
  local read = wrk.format("GET", "/")
  request = function()
    n = n + 1
    if n % 10 > 0 then return read end
    return wrk.format("POST", string.format("/mahasiswa/edit/22%08d", (n / 10 * 7) % rows), form,
      string.format("nama=Siti+Rahmawati&alamat=Jl.+%s+No.+%d%%2C+Bandung", tag, n))
  end
end

function init(arguments)
  if arguments[1] == "add" then add(arguments[2]) end
  if arguments[1] == "mixed" then mixed(arguments[2], tonumber(arguments[3])) end
end

function done(summary, latency)
  local redirects = 0
  for _, thread in ipairs(threads) do redirects = redirects + (thread:get("redirects") or 0) end
  local e = summary.errors
  io.write(string.format(
    '{"requests": %d, "seconds": %.6f, "bytes": %d, "redirects": %d, "p50_ms": %.3f, "p99_ms": %.3f,'
      .. ' "refused": %d, "broken": %d}\n',
    summary.requests, summary.duration / 1e6, summary.bytes, redirects,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    e.status, e.connect + e.read + e.write + e.timeout))
end
