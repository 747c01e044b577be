# Release builds: `make release VERSION=v1.2.3` puts archives and checksums into dist/.
VERSION ?= devel
PLATFORMS = linux-amd64 linux-arm64 darwin-amd64 darwin-arm64 windows-amd64
FLAGS = -trimpath -ldflags "-s -w -X belay/internal/cli.release=$(VERSION)"

install:
	go install $(FLAGS) ./cmd/belay

release: $(PLATFORMS:%=dist/belay-$(VERSION)-%.tar.gz)
	cd dist && sha256sum belay-$(VERSION)-*.tar.gz > belay-$(VERSION)-checksums.txt

dist/belay-$(VERSION)-%.tar.gz: FORCE
	mkdir -p dist/$*
	CGO_ENABLED=0 GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)) go build $(FLAGS) -o dist/$*/ ./cmd/belay
	cp LICENSE README.md dist/$*/
	tar -C dist/$* --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -czf $@ .

FORCE:
.PHONY: install release FORCE
