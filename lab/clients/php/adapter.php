<?php
// A client in PHP: php adapter.php NAME URL METHOD BODY-FILE TIMEOUT-MS KEY
// guzzle-retry is Guzzle with its own retry middleware, as its manual shows it.
[, $name, $url, $method, $file, $timeout, $key] = $argv + array_fill(0, 7, '');
require '/usr/share/php/GuzzleHttp/autoload.php';

use GuzzleHttp\Client;
use GuzzleHttp\HandlerStack;
use GuzzleHttp\Middleware;

$stack = HandlerStack::create();
if ($name === 'guzzle-retry') {
    $stack->push(Middleware::retry(
        fn ($retries, $request, $response, $error) => $retries < 3 && ($error !== null || $response->getStatusCode() >= 500)
    ));
}
$options = ['verify' => getenv('LULL_TORTURE_CA'), 'proxy' => ''];
if ($file !== '') {
    $options['body'] = file_get_contents($file);
}
if ((int) $timeout > 0) {
    $options['timeout'] = (int) $timeout / 1000;
}
if ($key !== '') {
    $options['headers'] = ['Idempotency-Key' => $key];
}
try {
    (new Client(['handler' => $stack]))->request($method, $url, $options)->getBody()->getContents();
} catch (Throwable $e) {
    fwrite(STDERR, strtok($e->getMessage(), "\n") . "\n");
    exit(1);
}
