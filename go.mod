module belay

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/google/jsonschema-go v0.4.3
	mvdan.cc/sh/v3 v3.14.1
)

require github.com/bmatcuk/doublestar/v4 v4.10.4
