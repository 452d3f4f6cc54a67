module github.com/lullgo/lull/examples/doors

go 1.26.0

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/lullgo/lull v0.0.0
	github.com/lullgo/lull/integrations/lullgrpc v0.0.0
	github.com/lullgo/lull/integrations/lullredis v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
	google.golang.org/grpc v1.85.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261026165753-2ffab32bce7e // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace (
	github.com/lullgo/lull => ../..
	github.com/lullgo/lull/integrations/lullgrpc => ../../integrations/lullgrpc
	github.com/lullgo/lull/integrations/lullredis => ../../integrations/lullredis
)
