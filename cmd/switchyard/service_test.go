package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAServiceManagerIsToldOfStartAndStop(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"gateway": {"gateway", "--listen=localhost:0", "--data=DIR/data"},
		"up":      {"up", "--listen=localhost:0", "--data=DIR/data", "--agent=local"},
		"project": {"project", "--listen=localhost:0", "--name=alpha", "--work=DIR/work", "--create"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			socket := filepath.Join(dir, "notify")
			conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			told := func() string {
				message := make([]byte, 64)
				n, err := conn.Read(message)
				if err != nil {
					t.Fatal(err)
				}
				return string(message[:n])
			}
			cmd := switchyard(t, dir, args...)
			cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket)
			p := start(t, cmd)
			if message := told(); message != "READY=1\n" {
				t.Errorf("told %q at the start", message)
			}
			if status, _ := p.do(t, "GET", "/healthz", ""); status != 200 {
				t.Errorf("healthz answers %d after READY=1", status)
			}
			p.stop(t, syscall.SIGTERM)
			if message := told(); message != "STOPPING=1\n" {
				t.Errorf("told %q at the stop", message)
			}
		})
	}
}

func TestHealthSaysWhetherAServerServes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	address := freeAddress(t)
	health := func(args ...string) (int, string) {
		cmd := switchyard(t, dir, append([]string{"health"}, args...)...)
		cmd.Env = append(cmd.Env, "SWITCHYARD_LISTEN="+address)
		return exitOf(t, cmd)
	}
	if status, says := health(); status != 1 || !strings.Contains(says, "http://"+address+"/healthz") {
		t.Errorf("nothing there: %d, %s", status, says)
	}
	start(t, switchyard(t, dir, "gateway", "--listen="+address, "--data=DIR/data"))
	if status, says := health(); status != 0 || says != "" {
		t.Errorf("a gateway: %d, %s", status, says)
	}
	_, port, _ := net.SplitHostPort(address)
	if status, says := health("--listen=0.0.0.0:" + port); status != 0 {
		t.Errorf("every address: %d, %s", status, says)
	}
	if status, says := health("--listen=nonsense"); status != 2 || !strings.Contains(says, "--listen: ") {
		t.Errorf("a mistake: %d, %s", status, says)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if status, says := health("--listen=" + other.Listener.Addr().String()); status != 1 || !strings.Contains(says, "404") {
		t.Errorf("another server: %d, %s", status, says)
	}
}

// TestTheSystemdUnitsAreSoundAndHardened verifies the units, with an existing path in place of the installed program's. Without
// systemd it only checks that the keys for hardening are present.
func TestTheSystemdUnitsAreSoundAndHardened(t *testing.T) {
	hardening := []string{"NoNewPrivileges=yes", "ProtectSystem=strict", "UMask=0077"}
	for name, c := range map[string]struct {
		keys  []string
		scope string
	}{
		"switchyard.service":          {append(hardening, "ProtectHome=yes", "ConfigurationDirectoryMode=0755"), "--system"}, // systemd.exec(5): unlike the others it is not given to User=, who must read it
		"switchyard-project@.service": {append(hardening, "ProtectHome=read-only", "StateDirectory=switchyard-project", "Environment=XDG_STATE_HOME=%S/switchyard-project"), "--system"},
		"switchyard-up.service":       {[]string{"NoNewPrivileges=yes", "UMask=0077"}, "--user"},
	} {
		t.Run(name, func(t *testing.T) {
			unit, err := os.ReadFile("../../contrib/" + name)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range append(c.keys, "Type=notify") {
				if !strings.Contains(string(unit), "\n"+line+"\n") {
					t.Errorf("the unit lacks %s", line)
				}
			}
			tool, err := exec.LookPath("systemd-analyze")
			if err != nil {
				return
			}
			if _, err := os.Stat("/run/systemd"); err != nil { // without it, as in a container, systemd-analyze verifies nothing
				return
			}
			path := filepath.Join(t.TempDir(), strings.ReplaceAll(name, "@", "@alpha"))
			if name == "switchyard.service" { // with what is added to it where there are several gateways
				addition := filepath.Join(path+".d", "database.conf")
				if err := os.Mkdir(filepath.Dir(addition), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(addition, []byte(contrib(t, "contrib/switchyard-database.conf")), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			text := strings.ReplaceAll(string(unit), "/usr/local/bin/switchyard", os.Args[0])
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(tool, "verify", c.scope, "--man=no", path)
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
			if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), filepath.Base(path)+":") || strings.Contains(string(out), "database.conf:") {
				t.Errorf("systemd-analyze verify: %v\n%s", err, out)
			}
		})
	}
}
