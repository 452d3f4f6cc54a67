module github.com/lullgo/lull/integrations/lullbolt

go 1.26.0

require (
	github.com/lullgo/lull v0.0.0
	go.etcd.io/bbolt v1.5.0
)

require golang.org/x/sys v0.50.0 // indirect

replace github.com/lullgo/lull => ../..
