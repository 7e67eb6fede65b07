-- The requests of wrk: `wrk -s wrk.lua URL -- read|add TAG`. Prints one line of JSON at the end.
-- Every request has a header of its own, because a server must not gain by comparing a request with the one before.
-- TAG makes new NIMs different from those of earlier runs.

local threads = {}
local form = { ["Content-Type"] = "application/x-www-form-urlencoded" }

function setup(thread)
  table.insert(threads, thread)
end

function init(arguments)
  local n = 0
  redirects = 0
  if arguments[1] == "read" then
    -- wrk.format takes 2 us, so it is called once. The head ends in an empty line; the header stands before that.
    local head = wrk.format("GET", "/"):sub(1, -3) .. "X-Request-Id: "
    request = function()
      n = n + 1
      return head .. n .. "\r\n\r\n"
    end
  else
    request = function()
      n = n + 1
      form["X-Request-Id"] = n
      return wrk.format("POST", "/mahasiswa/add", form,
        string.format("nim=%s%07d&nama=Siti+Rahmawati&alamat=Jl.+Merdeka+No.+%d%%2C+Bandung", arguments[2], n, n))
    end
    response = function(status)
      if status == 302 then redirects = redirects + 1 end
    end
  end
end

function done(summary)
  local redirects = 0
  for _, thread in ipairs(threads) do redirects = redirects + thread:get("redirects") end
  local e = summary.errors
  io.write(string.format('{"requests": %d, "seconds": %.6f, "redirects": %d, "errors": %d}\n',
    summary.requests, summary.duration / 1e6, redirects, e.status + e.connect + e.read + e.write + e.timeout))
end
