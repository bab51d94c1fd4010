package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"switchyard/internal/config"
)

// agentStateFile is where the identity of an agent of this label is kept by default.
func agentStateFile(label string) (string, error) {
	dir, ok := config.Expand("$XDG_STATE_HOME/switchyard", os.Getenv)
	if !ok {
		return "", errors.New("no home directory for the agent's state: set --state")
	}
	return filepath.Join(dir, agentStateName(label)), nil
}

// maxStateName leaves room in the 255 bytes of a file's name for what the names of lock and temporary files add.
const maxStateName = 255 - len("..1234567890.tmp")

// agentStateName is a file's name that no two labels share. A label that is too long for one stands in it as its hash.
func agentStateName(label string) string {
	name := "agent-" + strings.NewReplacer("%", "%25", "/", "%2F").Replace(label) + ".json"
	if len(name) > maxStateName {
		return fmt.Sprintf("agent-%%sha256-%x.json", sha256.Sum256([]byte(label)))
	}
	return name
}
