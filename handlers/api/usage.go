package api

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"google.golang.org/protobuf/encoding/protowire"

	"switchyard/internal/domain"
	"switchyard/internal/otlp"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// Limits of what clients export, in bytes: of logs once decompressed, of what is dropped as received.
const (
	maxLogs    = 4 << 20
	maxDropped = 16 << 20
)

// encoding is the encoding of an exporter's requests and answers: OTLP has JSON and protobuf.
type encoding struct{ json bool }

// encodingOf returns the encoding of a request. It returns UnsupportedType for any other content.
func encodingOf(r *http.Request) (encoding, error) {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch packed := r.Header.Get("Content-Encoding"); {
	case packed != "" && packed != "identity" && packed != "gzip",
		media != "application/json" && media != "application/x-protobuf":
		return encoding{}, domain.Errorf(domain.UnsupportedType,
			"the body must be application/x-protobuf or application/json, as it is or packed by gzip")
	}
	return encoding{media == "application/json"}, nil
}

// write writes an answer in the exporter's encoding.
func (e encoding) write(w http.ResponseWriter, status int, asJSON any, asProtobuf []byte) error {
	if e.json {
		web.WriteJSON(w, status, asJSON)
		return nil
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Header().Set("Cache-Control", "no-store")
	web.WriteBytes(w, status, asProtobuf)
	return nil
}

// refuse answers an unreadable request with a google.rpc.Status, as OTLP requires, and returns other errors.
func (e encoding) refuse(w http.ResponseWriter, err error) error {
	if code := domain.CodeOf(err); code != domain.Invalid && code != domain.TooLarge {
		return err
	}
	const invalidArgument = 3
	status, message := web.StatusOf(err), domain.MessageOf(err)
	asProtobuf := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), invalidArgument)
	asProtobuf = protowire.AppendString(protowire.AppendTag(asProtobuf, 2, protowire.BytesType), message)
	return e.write(w, status, map[string]any{"code": invalidArgument, "message": message}, asProtobuf)
}

// accept answers a request, saying how many of its records were rejected.
func (e encoding) accept(w http.ResponseWriter, rejected int) error {
	if rejected == 0 {
		return e.write(w, http.StatusOK, struct{}{}, nil)
	}
	type partial struct {
		Rejected string `json:"rejectedLogRecords"` // a string, like any 64-bit number in protobuf's JSON
		Message  string `json:"errorMessage"`
	}
	const message = "some records say of a call what cannot be"
	inner := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(rejected))
	inner = protowire.AppendString(protowire.AppendTag(inner, 2, protowire.BytesType), message)
	return e.write(w, http.StatusOK, map[string]any{"partialSuccess": partial{strconv.Itoa(rejected), message}},
		protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), inner))
}

// Logs takes model calls out of log records sent by OpenTelemetry exporters, and drops the rest.
func (a *API) Logs(w http.ResponseWriter, r *http.Request) error {
	e, err := encodingOf(r)
	if err != nil {
		return err
	}
	body, err := decompressed(w, r)
	if err != nil {
		return e.refuse(w, err)
	}
	calls, dropped, err := otlp.Decode(body, e.json)
	switch {
	case errors.Is(err, otlp.ErrMany):
		return e.refuse(w, domain.Errorf(domain.TooLarge, "%s", err))
	case err != nil:
		return e.refuse(w, domain.Errorf(domain.Invalid, "%s", err))
	}
	if err := a.service.Costs.Record(r.Context(), calls); err != nil {
		return err
	}
	a.metrics.UsageDropped(dropped)
	return e.accept(w, dropped)
}

// decompressed reads a body that may be compressed with gzip.
func decompressed(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := web.ReadBody(w, r, maxLogs)
	if err != nil || r.Header.Get("Content-Encoding") != "gzip" {
		return body, err
	}
	unpacker, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "the body is not packed by gzip")
	}
	body, err = io.ReadAll(io.LimitReader(unpacker, maxLogs+1))
	switch {
	case len(body) > maxLogs:
		return nil, domain.Errorf(domain.TooLarge, "the body must be at most %d bytes, unpacked", maxLogs)
	case err != nil:
		return nil, domain.Errorf(domain.Invalid, "the body cannot be unpacked")
	}
	return body, nil
}

// DropTelemetry answers exporters of metrics and traces, which repeat what logs say, or say what nobody needs.
func (a *API) DropTelemetry(w http.ResponseWriter, r *http.Request) error {
	e, err := encodingOf(r)
	if err != nil {
		return err
	}
	if err := web.Discard(w, r, maxDropped); err != nil {
		return e.refuse(w, err)
	}
	return e.accept(w, 0)
}

// ReportUsage stores a model call of a program that does not speak OTLP.
func (a *API) ReportUsage(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	c := domain.Call{
		Key: body.Text("id"), At: wire.Time(body.OptionalNumber("at_ms")), Client: body.Text("client"),
		Session: wire.Text(body.OptionalText("session")), Model: body.Text("model"),
		Project: wire.Text(body.OptionalText("project")), StoryID: wire.Text(body.OptionalText("story_id")),
	}
	for name, tokens := range map[string]*int64{
		"input": &c.Tokens.Input, "output": &c.Tokens.Output, "cache_read": &c.Tokens.CacheRead,
		"cache_creation": &c.Tokens.CacheCreation,
	} {
		if n := body.OptionalNumber(name); n != nil {
			*tokens = *n
		}
	}
	if raw, given := body.Raw("usd"); given && string(raw) != "null" {
		usd, ok := domain.ParseMicros(string(raw), domain.MaxUSD)
		if c.Stated = &usd; !ok {
			c.Stated = new(domain.Micros(-1))
		}
	}
	if err := body.Err(); err != nil {
		return err
	}
	switch {
	case c.Key == "" || utf8.RuneCountInString(c.Key) > 1000:
		return domain.Errorf(domain.Invalid, "id: must be 1 to 1000 characters")
	case c.Client == "" || c.Model == "":
		return domain.Errorf(domain.Invalid, "client and model: must not be empty")
	}
	added, err := a.service.Costs.RecordOne(r.Context(), c)
	status := http.StatusCreated
	if !added {
		status = http.StatusOK
	}
	return answer(w, status, map[string]string{"id": c.Key}, err)
}
