# A client in Perl: perl adapter.pl NAME URL METHOD BODY-FILE TIMEOUT-MS KEY
# HTTP::Tiny is a part of Perl; LWP is libwww-perl.
use strict;
use warnings;

my ($name, $url, $method, $file, $timeout, $key) = @ARGV;
my %headers = length($key // "") ? ("Idempotency-Key" => $key) : ();
my $body;
if (length($file // "")) {
    open(my $in, "<:raw", $file) or die "$file: $!\n";
    local $/;
    $body = <$in>;
}
if ($name eq "http-tiny") {
    require HTTP::Tiny;
    my $client = HTTP::Tiny->new(verify_SSL => 1, SSL_options => { SSL_ca_file => $ENV{LULL_TORTURE_CA} }, $timeout ? (timeout => $timeout / 1000) : ());
    my $resp = $client->request($method, $url, { headers => \%headers, defined($body) ? (content => $body) : () });
    die "$resp->{status} $resp->{reason}\n" unless $resp->{success};
} elsif ($name eq "lwp") {
    require LWP::UserAgent;
    require HTTP::Request;
    my $client = LWP::UserAgent->new(ssl_opts => { SSL_ca_file => $ENV{LULL_TORTURE_CA} }, $timeout ? (timeout => $timeout / 1000) : ());
    my $resp = $client->request(HTTP::Request->new($method, $url, [%headers], $body));
    die $resp->status_line . "\n" unless $resp->is_success;
    $resp->decoded_content;
} else {
    die "name http-tiny or lwp\n";
}
