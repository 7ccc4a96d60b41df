module framerun.dev/services/intake

go 1.27.3

require framerun.dev/pkg v0.0.0

replace (
	framerun.dev/migrations => ../../migrations
	framerun.dev/pkg => ../../pkg
)
