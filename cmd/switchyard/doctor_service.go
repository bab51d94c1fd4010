package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"switchyard/internal/config"
)

// unitFiles is where systemd looks for a unit, by precedence (systemd.unit(5)).
var unitFiles = []string{
	"etc/systemd/system/switchyard.service", "usr/local/lib/systemd/system/switchyard.service",
	"usr/lib/systemd/system/switchyard.service", "lib/systemd/system/switchyard.service",
}

var environmentLine = regexp.MustCompile(`(?m)^Environment=([A-Z_]+)=(.*)$`)

// doctorEnvironment returns the environment of the gateway in question: for root the installed one's. For a user
// without a gateway it is that one's, too, with a note if they may not read its data.
func doctorEnvironment(
	flags *pflag.FlagSet, environment func(string) string, root string, user int,
) (func(string) string, error) {
	service := asService(environment, root)
	dir := service("SWITCHYARD_DATA")
	switch {
	case flags.Changed("data") || dir == environment("SWITCHYARD_DATA"):
		return environment, nil
	case user == 0:
		return service, nil
	}
	if own, err := config.LoadSome(flags, environment, "gateway.data"); err != nil || exists(own.Data) {
		return environment, nil
	}
	if _, err := os.ReadDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s, the data of the installed service: %s; use sudo, or --data for another gateway",
			dir, causeOf(err))
	}
	return environment, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// asService returns environment or, if that names no data directory, environment backed by that of the unit of the
// gateway installed below root: whoever asks as root means that gateway. Paths are those of a system service.
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
