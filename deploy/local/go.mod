module framerun.dev/deploy/local

go 1.27.3

require (
	framerun.dev/migrations v0.0.0
	framerun.dev/pkg v0.0.0
)

require (
	github.com/johannesboyne/gofakes3 v1.2.0 // indirect
	github.com/ryszard/goskiplist v0.0.0-20150312221310-2dfbae5fcf46 // indirect
	go.shabbyrobe.org/gocovmerge v0.0.0-20230507111327-fa4f82cfbf4d // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	golang.org/x/tools v0.8.0 // indirect
	sigs.k8s.io/gateway-api v1.7.0 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)

replace (
	framerun.dev/migrations => ../../migrations
	framerun.dev/pkg => ../../pkg
)
