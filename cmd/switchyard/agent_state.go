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

// agentStateFile returns the default path of the state file of an agent with this label.
func agentStateFile(label string) (string, error) {
	dir, ok := config.Expand("$XDG_STATE_HOME/switchyard", os.Getenv)
	if !ok {
		return "", errors.New("no home directory for the agent's state: set --state")
	}
	return filepath.Join(dir, agentStateName(label)), nil
}

// maxStateName is in bytes. Names of lock and temporary files are longer and must still fit the usual limit of 255.
const maxStateName = 255 - len("..1234567890.tmp")

// agentStateName returns a file name that is unique to the label. A label that is too long for one is replaced by its
// hash.
func agentStateName(label string) string {
	name := "agent-" + strings.NewReplacer("%", "%25", "/", "%2F").Replace(label) + ".json"
	if len(name) > maxStateName {
		return fmt.Sprintf("agent-%%sha256-%x.json", sha256.Sum256([]byte(label)))
	}
	return name
}
