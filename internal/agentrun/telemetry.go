package agentrun

import (
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// resourceAttributes is the variable whose attributes are in everything that a client exports.
const resourceAttributes = "OTEL_RESOURCE_ATTRIBUTES="

// ClaudeTelemetry returns the variables that make Claude Code report its calls of models to a gateway, none if it
// already exports them elsewhere.
func ClaudeTelemetry(env []string, gateway string) []string {
	if exportsElsewhere(env) {
		return nil
	}
	return []string{
		"CLAUDE_CODE_ENABLE_TELEMETRY=1", "OTEL_LOGS_EXPORTER=otlp", "OTEL_METRICS_EXPORTER=none",
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_ENDPOINT=" + gateway,
	}
}

func exportsElsewhere(env []string) bool {
	return slices.ContainsFunc(env, func(line string) bool {
		name, value, _ := strings.Cut(line, "=")
		return strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") && value != ""
	})
}

// telemetry adds to the environment and the command what makes coding agents' clients report their calls of models to
// the gateway, which adds up the costs of stories from them. It adds nothing if anything is already exported: the token
// would go to somebody else's collector.
func telemetry(env, command []string, gateway, token, project string) ([]string, []string) {
	if token == "" || exportsElsewhere(env) {
		return env, command
	}
	attributes := "switchyard.project=" + strings.ReplaceAll(url.QueryEscape(project), "+", "%20")
	if i := slices.IndexFunc(env, func(line string) bool { return strings.HasPrefix(line, resourceAttributes) }); i >= 0 {
		if set := strings.TrimPrefix(env[i], resourceAttributes); set != "" {
			attributes = set + "," + attributes
		}
		env = slices.Delete(slices.Clone(env), i, i+1)
	}
	env = append(append(env[:len(env):len(env)], ClaudeTelemetry(env, gateway)...),
		"OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer "+token, resourceAttributes+attributes,
		"GEMINI_TELEMETRY_ENABLED=true", "GEMINI_TELEMETRY_TARGET=local", "GEMINI_TELEMETRY_OTLP_PROTOCOL=http",
		"GEMINI_TELEMETRY_OTLP_ENDPOINT="+gateway, "GEMINI_TELEMETRY_LOG_PROMPTS=false")
	if len(command) == 0 || strings.TrimSuffix(filepath.Base(command[0]), ".exe") != "codex" {
		return env, command
	}
	// Codex reads only its configuration, but takes headers from the environment: no token is on a command line.
	logs := "{otlp-http = {endpoint = " + strconv.Quote(gateway+"/v1/logs") + `, protocol = "json"}}`
	flags := []string{
		"-c", "otel.exporter=" + logs, "-c", `otel.metrics_exporter="none"`, "-c", `otel.trace_exporter="none"`,
	}
	return env, slices.Insert(slices.Clone(command), 1, flags...)
}
