package agentrun

import (
	"slices"
	"strings"
	"testing"
)

func TestACommandReportsWhatItUses(t *testing.T) {
	set := []string{"HOME=/home/me", "OTEL_RESOURCE_ATTRIBUTES=team=a"}
	env, command := telemetry(set, []string{"/usr/bin/codex", "exec"}, "http://gateway:3000", "swk_secret", "web shop, ä=;")
	for _, want := range []string{
		"HOME=/home/me", "CLAUDE_CODE_ENABLE_TELEMETRY=1", "OTEL_LOGS_EXPORTER=otlp", "OTEL_METRICS_EXPORTER=none",
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_ENDPOINT=http://gateway:3000",
		"OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer swk_secret",
		"OTEL_RESOURCE_ATTRIBUTES=team=a,switchyard.project=web%20shop%2C%20%C3%A4%3D%3B", "GEMINI_TELEMETRY_ENABLED=true",
		"GEMINI_TELEMETRY_TARGET=local", "GEMINI_TELEMETRY_OTLP_PROTOCOL=http", "GEMINI_TELEMETRY_OTLP_ENDPOINT=http://gateway:3000",
		"GEMINI_TELEMETRY_LOG_PROMPTS=false",
	} {
		if !slices.Contains(env, want) {
			t.Errorf("the environment lacks %s: %v", want, env)
		}
	}
	if len(env) != 13 || len(set) != 2 || set[1] != "OTEL_RESOURCE_ATTRIBUTES=team=a" {
		t.Errorf("%d variables, %v", len(env), set)
	}
	want := `/usr/bin/codex -c otel.exporter={otlp-http = {endpoint = "http://gateway:3000/v1/logs", protocol = "json"}} -c otel.metrics_exporter="none" -c otel.trace_exporter="none" exec`
	if got := strings.Join(command, " "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if _, command := telemetry(set, []string{"claude", "-p"}, "http://gateway", "swk_secret", "a"); len(command) != 2 {
		t.Errorf("%v", command)
	}
	for what, c := range map[string]struct {
		env   []string
		token string
	}{
		"without a token":             {set, ""},
		"with a collector of its own": {append(set, "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://collector"), "swk_secret"},
	} {
		if env, command := telemetry(c.env, []string{"codex"}, "http://gateway", c.token, "a"); !slices.Equal(env, c.env) || len(command) != 1 {
			t.Errorf("%s: %v, %v", what, env, command)
		}
	}
}
