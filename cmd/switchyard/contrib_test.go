package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

func contrib(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheImageIsBuiltFromAPinnedBaseAndChecksItsHealth(t *testing.T) {
	text := contrib(t, "contrib/Dockerfile")
	for _, from := range regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+)`).FindAllStringSubmatch(text, -1) {
		if from[1] != "scratch" && !regexp.MustCompile(`:\d+\.\d+\.\d+-\w+(@sha256:[0-9a-f]{64})?$`).MatchString(from[1]) {
			t.Errorf("the base %s can become another image", from[1])
		}
	}
	if !strings.Contains(text, `CMD ["/switchyard", "health"]`) {
		t.Error("the image has no health check")
	}
	for _, want := range []string{"USER 65532", "LABEL org.opencontainers.image.", "image.version=", "image.revision="} {
		if !strings.Contains(text, want) {
			t.Errorf("the image lacks %s", want)
		}
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(contrib(t, "go.mod"))
	if version == nil || !strings.Contains(text, "golang:"+version[1]+".") {
		t.Errorf("the image is not built with the Go of go.mod, %v", version)
	}
}

// TestTheProgramHasTheTimeZones, since the image has nothing but the program: readers and targets name zones.
func TestTheProgramHasTheTimeZones(t *testing.T) {
	if !strings.Contains(contrib(t, "contrib/Dockerfile"), "\nFROM scratch\n") {
		t.Error("the image has more than the program; does it have the time zones?")
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	zone := strings.Join([]string{"Pacific", "Kiritimati"}, "/") // as one literal it would be in the test itself
	if !strings.Contains(string(program), zone) {
		t.Errorf("the program lacks the time zone %s", zone)
	}
}

// TestTheImageGetsNoSecretsAndNoWeight: "COPY . ." copies everything that is not ignored.
func TestTheImageGetsNoSecretsAndNoWeight(t *testing.T) {
	ignored := "\n" + contrib(t, ".dockerignore")
	for _, line := range []string{".git", "bin", "node_modules", "**/*.db", "**/session.key", "**/credentials.json", "**/bot.toml"} {
		if !strings.Contains(ignored, "\n"+line+"\n") {
			t.Errorf(".dockerignore lacks %s", line)
		}
	}
}

func TestTheProxyAsksForHTTPSForLong(t *testing.T) {
	for _, name := range []string{"Caddyfile", "Caddyfile.gateways"} {
		if text := contrib(t, "contrib/"+name); !regexp.MustCompile(`header Strict-Transport-Security "max-age=\d{8}`).MatchString(text) {
			t.Errorf("%s sends no Strict-Transport-Security", name)
		}
	}
}

func TestTheProxyAsksGatewaysWhetherTheyAreReady(t *testing.T) {
	text := contrib(t, "contrib/Caddyfile.gateways")
	for _, want := range []string{"health_uri /readyz", "health_interval ", "health_timeout ", "handle_errors {"} {
		if !strings.Contains(text, "\t"+want) {
			t.Errorf("Caddyfile.gateways lacks %s", want)
		}
	}
	if strings.Count(text, "{") != strings.Count(text, "}") {
		t.Error("a block is not closed")
	}
}

// TestComposedGatewaysShareTheirDatabaseOnly: both have the same configuration, and each writes to its own files.
func TestComposedGatewaysShareTheirDatabaseOnly(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Image, Hostname string
			Environment     map[string]string
			Configs         []string
			Volumes         []string
		}
		Configs map[string]struct{ Content string }
	}
	if err := yaml.Unmarshal([]byte(contrib(t, "contrib/compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	one, other := file.Services["gateway-1"], file.Services["gateway-2"]
	if !strings.HasPrefix(one.Environment["SWITCHYARD_DATABASE"], "postgres://") || !maps.Equal(one.Environment, other.Environment) {
		t.Errorf("the gateways are configured as %v and %v", one.Environment, other.Environment)
	}
	if len(one.Volumes) != 1 || len(other.Volumes) != 1 || one.Volumes[0] == other.Volumes[0] {
		t.Errorf("the gateways write to %v and %v", one.Volumes, other.Volumes)
	}
	for name, service := range file.Services {
		if strings.HasPrefix(name, "gateway-") && service.Hostname != name {
			t.Errorf("%s does not answer to its name", name)
		}
		if service.Image != "switchyard" && !regexp.MustCompile(`:\d+\.\d+`).MatchString(service.Image) {
			t.Errorf("%s can become another image: %s", name, service.Image)
		}
		for _, config := range service.Configs {
			var settings map[string]any
			if err := toml.Unmarshal([]byte(file.Configs[config].Content), &settings); err != nil || len(settings) == 0 {
				t.Errorf("%s: %v", config, err)
			}
		}
	}
}

// TestServicesAreHardenedAlike: what the gateway's unit restricts, the others do too, as far as a user's service can.
func TestServicesAreHardenedAlike(t *testing.T) {
	settings := func(name string) map[string]bool {
		set := map[string]bool{}
		for line := range strings.Lines(contrib(t, "contrib/"+name)) {
			if regexp.MustCompile(`^(UMask|NoNew|Private|Protect|Restrict|Lock|Memory|Capability|SystemCall|LimitNOFILE)`).MatchString(line) {
				set[strings.TrimSpace(line)] = true
			}
		}
		return set
	}
	const home, proc = "ProtectHome=yes", "ProtectProc=invisible"
	for name, without := range map[string][]string{
		"switchyard-project@.service": {home}, // it may read boards there
		"switchyard-up.service":       {home, proc},
		"switchyard-backup.service":   {"LimitNOFILE=65536"},
	} {
		has := settings(name)
		for line := range settings("switchyard.service") {
			if !has[line] && !slices.Contains(without, line) {
				t.Errorf("%s lacks %s", name, line)
			}
		}
	}
}
