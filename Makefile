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

# The whole starter suite: its controls, then 1 for the oracles, 0 for doing nothing and 0 for the cheats. About two minutes.
suite:
	go build -o dist/suite/belay ./cmd/belay
	rm -rf dist/suite/results && export BELAY_HOME=$(CURDIR)/dist/suite/home && cd dist/suite && \
	./belay eval check $(CURDIR)/suites/starter && \
	for try in oracle=1 null=0 cheat=0; do \
	  ./belay eval run $(CURDIR)/suites/starter --model rehearsal:$${try%=*} --no-controls --parallel 2 --out results/$${try%=*} --json > $${try%=*}.json && \
	  grep -A1 '"pass_hat"' $${try%=*}.json && grep -A1 '"pass_hat"' $${try%=*}.json | grep -q "\"1\": $${try#*=}" || exit 1; done

FORCE:
.PHONY: install release suite FORCE
