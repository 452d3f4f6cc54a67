<?php
// A service without anything for clients that retry: PHP_CLI_SERVER_WORKERS=16 php -S 127.0.0.1:PORT app.php
header('Content-Type: application/json');
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    http_response_code($_SERVER['REQUEST_URI'] === '/fails' ? 500 : 201);
    echo json_encode(['id' => bin2hex(random_bytes(8))]);
} else {
    usleep($_SERVER['REQUEST_URI'] === '/slow' ? 1_500_000 : 50_000);
    echo '{}';
}
