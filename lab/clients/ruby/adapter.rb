# The protocol of lull torture for clients in Ruby: see docs/torture.md.
#
#     ruby adapter.rb NAME
require "date" # Faraday's retry needs it, and does not require it itself
require "net/http"
require "uri"

CA = ENV.fetch("LULL_TORTURE_CA")

# net-http repeats idempotent requests once: Net::HTTP#max_retries.
def net_http
  lambda do |method, url, headers, body, timeout|
    uri = URI(url)
    http = Net::HTTP.new(uri.host, uri.port, nil)
    http.use_ssl = uri.scheme == "https"
    http.ca_file = CA if http.use_ssl?
    http.open_timeout = http.read_timeout = timeout if timeout
    http.start do |h|
      request = Net::HTTP.const_get(method.capitalize).new(uri.request_uri, headers)
      request.body = body if body
      response = h.request(request)
      response.body
      response.code.to_i
    end
  end
end

def faraday(retries)
  require "faraday"
  client = Faraday.new(ssl: { ca_file: CA }, proxy: nil) do |f|
    f.request(:retry, retry_statuses: [429, 500, 502, 503, 504]) if retries
    f.adapter Faraday.default_adapter
  end
  lambda do |method, url, headers, body, timeout|
    client.run_request(method.downcase.to_sym, url, body, headers) { |r| r.options.timeout = timeout if timeout }.tap(&:body).status
  end
end

def excon
  require "excon"
  lambda do |method, url, headers, body, timeout|
    options = { method: method, headers: headers, idempotent: %w[GET HEAD PUT DELETE].include?(method), retry_limit: 4, ssl_ca_file: CA, proxy: nil }
    options[:body] = body if body
    options[:read_timeout] = timeout if timeout
    Excon.new(url).request(options).tap(&:body).status
  end
end

CLIENTS = {
  "net-http" => -> { net_http },
  "faraday" => -> { faraday(false) },
  "faraday-retry" => -> { faraday(true) },
  "excon" => -> { excon },
}.freeze

make = CLIENTS[ARGV[0]] or abort("name one of #{CLIENTS.keys.join(', ')}")
made = { "0" => make.call } # what a client needs to load is no part of its calls
lock = Mutex.new
$stdout.sync = true
puts "ready"
threads = $stdin.each_line.map do |line|
  Thread.new do
    id, client, method, url, file, timeout, key = line.chomp.split("\t")
    call = lock.synchronize { made[client] ||= make.call }
    headers = key == "-" ? {} : { "Idempotency-Key" => key }
    body = file == "-" ? nil : File.binread(file)
    headers["Content-Type"] = "application/octet-stream" if body
    begin
      status = call.call(method, url, headers, body, timeout == "0" ? nil : timeout.to_f / 1000)
      answer = "#{id}\t#{status.between?(200, 299) ? 'ok' : 'failed'}\t#{status}\t"
    rescue StandardError => e
      answer = "#{id}\tfailed\t0\t#{e.class}: #{e.message.split("\n").first.to_s[0, 200]}"
    end
    lock.synchronize { puts answer }
  end
end
threads.each(&:join)
