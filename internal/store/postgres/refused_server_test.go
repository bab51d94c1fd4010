package postgres_test

import (
	"encoding/binary"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"switchyard/internal/domain"
	"switchyard/internal/store/postgres"
)

// stubServer starts a fake PostgreSQL with these parameters, which answers each statement with a number, 4711 plus the
// number of statements before divided by same. It returns the address.
func stubServer(t *testing.T, parameters map[string]string, same int64) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var answered atomic.Int64
	next := func() uint32 { return 4711 + uint32((answered.Add(1)-1)/same) }
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				_ = answerAsStub(pgproto3.NewBackend(connection, connection), parameters, next)
			}()
		}
	}()
	return "postgres://" + listener.Addr().String() + "/db?sslmode=disable"
}

func answerAsStub(b *pgproto3.Backend, parameters map[string]string, next func() uint32) error {
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return err
	}
	b.Send(&pgproto3.AuthenticationOk{})
	for name, value := range parameters {
		b.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	b.Send(&pgproto3.BackendKeyData{ProcessID: 4711, SecretKey: []byte{1, 2, 3, 4}})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	number := &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("number"), DataTypeOID: 23, DataTypeSize: 4, TypeModifier: -1, Format: 1}}}
	for {
		if err := b.Flush(); err != nil {
			return err
		}
		message, err := b.Receive()
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case *pgproto3.Parse:
			b.Send(&pgproto3.ParseComplete{})
		case *pgproto3.Describe:
			if m.ObjectType == 'S' {
				b.Send(&pgproto3.ParameterDescription{})
			}
			b.Send(number)
		case *pgproto3.Bind:
			b.Send(&pgproto3.BindComplete{})
		case *pgproto3.Execute:
			b.Send(&pgproto3.DataRow{Values: [][]byte{binary.BigEndian.AppendUint32(nil, next())}})
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
		case *pgproto3.Sync:
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		case *pgproto3.Terminate:
			return nil
		}
	}
}

// TestServersThatCannotBeUsedAreRefused: the error is logged at the start.
func TestServersThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	const anyMode, pooled = "&default_query_exec_mode=exec", "PgBouncer pools transactions: make it pool sessions, or add default_query_exec_mode=cache_describe to the address"
	for name, c := range map[string]struct {
		version, encoding, options string
		same                       int64
		want                       string
	}{
		"an old server":        {"14.19 (Debian 14.19-1)", "UTF8", anyMode, math.MaxInt64, "PostgreSQL 14.19 (Debian 14.19-1) is too old: 15 or newer is required"},
		"another encoding":     {"18beta1", "LATIN1", anyMode, math.MaxInt64, "the database has the encoding LATIN1: UTF8 is required"},
		"one process for both": {"17.2", "UTF8", "", math.MaxInt64, pooled},
		"another one each time, as where many share a pool": {"17.2", "UTF8", "", 1, pooled},
		"the same one for a while":                          {"17.2", "UTF8", "", 3, pooled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := stubServer(t, map[string]string{
				"server_version": c.version, "server_encoding": c.encoding, "client_encoding": "UTF8", "standard_conforming_strings": "on",
			}, c.same)
			_, err := postgres.Open(t.Context(), address+c.options)
			if err == nil || !strings.Contains(err.Error(), c.want) || domain.CodeOf(err) == domain.Unavailable {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
