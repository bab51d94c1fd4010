package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a server started for a measurement.
type process struct {
	command *exec.Cmd
	address string
}

func (p *process) url() string { return "http://" + p.address }
func (p *process) pid() int    { return p.command.Process.Pid }

func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	_ = p.command.Wait()
}

// freeAddress returns a loopback address that is free now.
func freeAddress() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// start runs the program with a --listen flag, waits until it answers, and returns how long that took.
func start(program string, args ...string) (*process, time.Duration, error) {
	address := freeAddress()
	home := filepath.Join(workDir, "home")
	command := exec.Command(program, append(args, "--listen", address)...)
	command.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	began := time.Now()
	if err := command.Start(); err != nil {
		return nil, 0, err
	}
	p := &process{command, address}
	for time.Since(began) < 10*time.Second {
		if err := answers(address); err == nil {
			return p, time.Since(began), nil
		}
		time.Sleep(200 * time.Microsecond)
	}
	p.stop()
	return nil, 0, fmt.Errorf("%s did not start: %s", strings.Join(args, " "), output.String())
}

// answers requests /healthz over a new connection.
func answers(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	return readAnswer(bufio.NewReader(conn))
}
