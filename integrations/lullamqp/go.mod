module github.com/lullgo/lull/integrations/lullamqp

go 1.26.0

require (
	github.com/lullgo/lull v0.0.0
	github.com/rabbitmq/amqp091-go v1.16.0
)

replace github.com/lullgo/lull => ../..
