package web

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// newJoiningServer answers /N with N bytes, /flushed/N with a flushed line before them, and /chunks/N with N bytes in pieces.
func newJoiningServer(t *testing.T) *httptest.Server {
	server := httptest.NewUnstartedServer(LimitWriteTime(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, number, found := strings.Cut(r.URL.Path[1:], "/")
		if !found {
			form, number = "", form
		}
		size, _ := strconv.Atoi(number)
		switch form {
		case "":
			w.Header().Set("Content-Length", number)
			_, _ = w.Write(pattern(size))
		case "flushed":
			_, _ = io.WriteString(w, "begins\n")
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(pattern(size))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done() // the client has what was flushed, and goes
		case "chunks":
			for b := pattern(size); len(b) > 0; b = b[min(len(b), 5000):] {
				_, _ = w.Write(b[:min(len(b), 5000)])
			}
		}
	})))
	server.Config.ConnContext = NewConnections(100).Context
	server.Listener = JoinWrites(server.Listener)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// pattern returns bytes of which no two pieces are alike.
func pattern(size int) []byte { return patternBytes()[:size] }

var patternBytes = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.Bytes()
})

func TestAnswersOfEverySizeArriveWhole(t *testing.T) {
	server := newJoiningServer(t)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for _, path := range []string{"/", "/chunks/"} {
		sizes := []int{0, 1, 2047, 2048, 2049, 12287, 12288, 12289, 93000, 1 << 20}
		for size := headSize - 300; size <= headSize+20; size++ { // the head of the answer takes up to 300 bytes of the buffer
			sizes = append(sizes, size, size+headSize)
		}
		for _, size := range sizes {
			for _, method := range []string{http.MethodHead, http.MethodGet} {
				_, _ = fmt.Fprintf(conn, "%s %s%d HTTP/1.1\r\nHost: localhost\r\n\r\n", method, path, size)
				response, err := http.ReadResponse(reader, &http.Request{Method: method})
				if err != nil {
					t.Fatalf("%s %s%d: %v", method, path, size, err)
				}
				body, err := io.ReadAll(response.Body)
				if err != nil || method == http.MethodGet && !bytes.Equal(body, pattern(size)) {
					t.Fatalf("%s %s%d: %d bytes, %v", method, path, size, len(body), err)
				}
			}
		}
	}
}

func TestWhatIsFlushedIsNotKept(t *testing.T) {
	server := newJoiningServer(t)
	for _, size := range []int{headSize - 8, headSize, headSize + 1, 2 * headSize, 3*headSize + 1, 93000} {
		response, err := http.Get(server.URL + "/flushed/" + strconv.Itoa(size))
		if err != nil {
			t.Fatal(err)
		}
		want := "begins\n" + string(pattern(size))
		got := make([]byte, len(want))
		if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != want {
			t.Errorf("%d bytes: %v", size, err)
		}
		response.Body.Close()
	}
}

func TestALargeAnswerBeginsWithMoreThanTheBuffer(t *testing.T) {
	server := newJoiningServer(t)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 100 { // two writes may arrive together now and then
		_, _ = io.WriteString(conn, "GET /20000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
		first := make([]byte, 64<<10)
		n, err := conn.Read(first)
		if err != nil || n <= headSize {
			t.Fatalf("the first read has %d bytes, %v", n, err)
		}
		_, body, _ := bytes.Cut(first[:n], []byte("\r\n\r\n"))
		if _, err := io.CopyN(io.Discard, conn, int64(20000-len(body))); err != nil {
			t.Fatal(err)
		}
	}
}
