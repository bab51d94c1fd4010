package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// unitFiles is where systemd looks for a unit, by precedence (systemd.unit(5)).
var unitFiles = []string{
	"etc/systemd/system/switchyard.service", "usr/local/lib/systemd/system/switchyard.service",
	"usr/lib/systemd/system/switchyard.service", "lib/systemd/system/switchyard.service",
}

var environmentLine = regexp.MustCompile(`(?m)^Environment=([A-Z_]+)=(.*)$`)

// asService returns environment, and behind it, where that names no data directory, that of the unit which the gateway
// was installed with below root: somebody who asks as root means that gateway. Paths are those of a system service.
func asService(environment func(string) string, root string) func(string) string {
	if environment("SWITCHYARD_DATA") != "" {
		return environment
	}
	for _, name := range unitFiles {
		unit, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue
		}
		ofUnit := map[string]string{}
		for _, line := range environmentLine.FindAllStringSubmatch(string(unit), -1) {
			ofUnit[line[1]] = strings.NewReplacer("%S", "/var/lib", "%E", "/etc").Replace(line[2])
		}
		return func(key string) string {
			if value := environment(key); value != "" {
				return value
			}
			return ofUnit[key]
		}
	}
	return environment
}
