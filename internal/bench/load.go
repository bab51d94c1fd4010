package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// connections is the number of keep-alive connections of the load generator. It shares the cores with the server, so
// more would only measure the scheduler.
const connections = 8

// load sends the same GET over keep-alive connections for the duration and returns answers per second. Each answer must
// be 200 and is read to its end.
func load(address, path string, duration time.Duration, headers ...string) (float64, error) {
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + strings.Join(append(headers, "", ""), "\r\n"))
	ctx, cancel := context.WithTimeout(context.Background(), duration)
	defer cancel()
	var answers atomic.Int64
	failures := make(chan error, connections)
	var done sync.WaitGroup
	began := time.Now()
	for range connections {
		done.Go(func() {
			if err := loadOne(ctx, address, request, &answers); err != nil {
				failures <- err
			}
		})
	}
	done.Wait()
	select {
	case err := <-failures:
		return 0, fmt.Errorf("%s: %w", path, err)
	default:
	}
	return float64(answers.Load()) / time.Since(began).Seconds(), nil
}

func loadOne(ctx context.Context, address string, request []byte, answers *atomic.Int64) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	reader := bufio.NewReaderSize(conn, 256<<10)
	for ctx.Err() == nil {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if err := readAnswer(reader); err != nil {
			return err
		}
		answers.Add(1)
	}
	return nil
}

var lengthHeader = []byte("content-length:")

// readAnswer reads one answer with a Content-Length, which must be 200, with as little work as possible.
func readAnswer(reader *bufio.Reader) error {
	length := 0
	for first := true; ; first = false {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case first:
			if _, code, _ := bytes.Cut(line, []byte(" ")); len(code) < 3 || string(code[:3]) != "200" {
				return fmt.Errorf("answered %q", line)
			}
		case len(line) == 0:
			_, err := reader.Discard(length)
			return err
		case len(line) > len(lengthHeader) && bytes.EqualFold(line[:len(lengthHeader)], lengthHeader):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(lengthHeader):]))); err != nil {
				return err
			}
		}
	}
}

// get returns the body of a GET and its headers; any status but 200 is an error.
func get(url string, header ...string) ([]byte, http.Header, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s", url, response.Status)
	}
	return body, response.Header, err
}

// clockTick is the unit of CPU time in /proc/PID/stat on Linux: USER_HZ is 100 on every architecture that Go knows.
const clockTick = 10 * time.Millisecond

// cpuTime returns the CPU time that a process has used, from /proc/PID/stat (proc(5): fields 14 and 15).
func cpuTime(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * clockTick
}

// memory returns a process's private memory in MiB, RssAnon of /proc/PID/status.
func memory(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if kib, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, _ := strconv.Atoi(strings.Fields(kib)[0])
			return float64(n) / 1024
		}
	}
	return 0
}
