module github.com/lullgo/lull/integrations/sqs

go 1.26.0

require (
	github.com/aws/aws-sdk-go-v2 v1.36.5
	github.com/aws/aws-sdk-go-v2/service/sqs v1.38.8
	github.com/aws/smithy-go v1.22.4
	github.com/lullgo/lull v0.0.0
)

require (
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.3.36 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.6.36 // indirect
)

replace github.com/lullgo/lull => ../..
