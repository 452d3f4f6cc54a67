// The protocol of lull torture for clients in Java: see docs/torture.md. Compiled by install.sh.
//
//     java -cp CLASSES Adapter NAME
import java.io.*;
import java.net.*;
import java.net.http.HttpRequest;
import java.nio.file.*;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import javax.net.ssl.*;

public class Adapter {
    interface Call {
        int make(String method, String url, String key, byte[] body, int timeout) throws Exception;
    }

    static X509TrustManager trust;
    static SSLContext tls;

    static Call jdk() {
        var client = java.net.http.HttpClient.newBuilder().sslContext(tls).build();
        return (method, url, key, body, timeout) -> {
            var publisher = body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofByteArray(body);
            var request = HttpRequest.newBuilder(URI.create(url)).method(method, publisher);
            if (key != null) request.header("Idempotency-Key", key);
            if (timeout > 0) request.timeout(Duration.ofMillis(timeout));
            return client.send(request.build(), java.net.http.HttpResponse.BodyHandlers.ofString()).statusCode();
        };
    }

    static Call okhttp() {
        var base = new okhttp3.OkHttpClient.Builder().sslSocketFactory(tls.getSocketFactory(), trust).proxy(Proxy.NO_PROXY).build();
        return (method, url, key, body, timeout) -> {
            var client = timeout > 0 ? base.newBuilder().callTimeout(timeout, TimeUnit.MILLISECONDS).build() : base;
            var request = new okhttp3.Request.Builder().url(url).method(method, body == null ? null : okhttp3.RequestBody.create(null, body));
            if (key != null) request.header("Idempotency-Key", key);
            try (var resp = client.newCall(request.build()).execute()) {
                resp.body().string();
                return resp.code();
            }
        };
    }

    static Call apache4() {
        var client = org.apache.http.impl.client.HttpClients.custom().setSSLContext(tls)
            .setServiceUnavailableRetryStrategy(new org.apache.http.impl.client.DefaultServiceUnavailableRetryStrategy(3, 1000)).build();
        return (method, url, key, body, timeout) -> {
            var request = org.apache.http.client.methods.RequestBuilder.create(method).setUri(url);
            if (key != null) request.addHeader("Idempotency-Key", key);
            if (body != null) request.setEntity(new org.apache.http.entity.ByteArrayEntity(body));
            if (timeout > 0) request.setConfig(org.apache.http.client.config.RequestConfig.custom().setSocketTimeout(timeout).setConnectTimeout(timeout).build());
            try (var resp = client.execute(request.build())) {
                if (resp.getEntity() != null) org.apache.http.util.EntityUtils.toString(resp.getEntity());
                return resp.getStatusLine().getStatusCode();
            }
        };
    }

    public static void main(String[] args) throws Exception {
        var store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var in = new FileInputStream(System.getenv("LULL_TORTURE_CA"))) {
            store.setCertificateEntry("torture", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        var factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        trust = (X509TrustManager) factory.getTrustManagers()[0];
        tls = SSLContext.getInstance("TLS");
        tls.init(null, factory.getTrustManagers(), null);
        Map<String, Callable<Call>> clients = Map.of("jdk-httpclient", Adapter::jdk, "okhttp", Adapter::okhttp, "apache-httpclient", Adapter::apache4);
        var make = clients.get(args.length == 1 ? args[0] : "");
        if (make == null) {
            System.err.println("name one of " + clients.keySet());
            System.exit(2);
        }
        var made = new ConcurrentHashMap<String, Call>();
        made.put("0", make.call()); // what a client needs to load is no part of its calls
        var threads = Executors.newCachedThreadPool();
        var out = System.out;
        out.println("ready");
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            var f = line.split("\t");
            threads.execute(() -> {
                String answer;
                try {
                    var call = made.computeIfAbsent(f[1], n -> {
                        try {
                            return make.call();
                        } catch (Exception e) {
                            throw new RuntimeException(e);
                        }
                    });
                    int status = call.make(f[2], f[3], f[6].equals("-") ? null : f[6], f[4].equals("-") ? null : Files.readAllBytes(Path.of(f[4])), Integer.parseInt(f[5]));
                    answer = f[0] + "\t" + (status / 100 == 2 ? "ok" : "failed") + "\t" + status + "\t";
                } catch (Throwable e) {
                    answer = f[0] + "\tfailed\t0\t" + String.valueOf(e).replaceAll("\\s+", " ");
                }
                synchronized (out) {
                    out.println(answer);
                }
            });
        }
        System.exit(0);
    }
}
