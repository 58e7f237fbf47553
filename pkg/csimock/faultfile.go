package csimock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"sigs.k8s.io/yaml"
)

// faultEntry is a Fault in a file.
type faultEntry struct {
	Method     string        `json:"method"`
	Volume     string        `json:"volume"`
	Code       string        `json:"code"`
	Times      int           `json:"times"`
	Every      int           `json:"every"`
	Latency    string        `json:"latency"`
	Hang       bool          `json:"hang"`
	Disconnect bool          `json:"disconnect"`
	After      bool          `json:"after"`
	Response   WrongResponse `json:"response"`
}

// LoadFaults reads a YAML or JSON file with a list of faults, such as
//
//   - method: DeleteVolume
//     code: Unavailable
//     times: 2
//     latency: 100ms
//
// Further fields are volume, every, hang, disconnect, after and response. An error names the file
// and the entry.
func LoadFaults(path string) ([]Fault, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read faults: %w", err)
	}
	var entries []json.RawMessage
	if err := yaml.UnmarshalStrict(data, &entries); err != nil {
		return nil, fmt.Errorf("read faults %s: want a list of faults: %w", path, err)
	}
	faults := make([]Fault, 0, len(entries))
	for i, entry := range entries {
		fault, err := parseFault(entry)
		if err != nil {
			return nil, fmt.Errorf("read faults %s: entry %d: %w", path, i+1, err)
		}
		faults = append(faults, fault)
	}
	return faults, nil
}

// parseFault reads one entry of a file, converted to JSON.
func parseFault(data []byte) (Fault, error) {
	var entry faultEntry
	if err := decodeStrict(data, &entry); err != nil {
		return Fault{}, fmt.Errorf("decode fault: %w", err)
	}
	code, err := parseCode(entry.Code)
	if err != nil {
		return Fault{}, err
	}
	latency, err := parseLatency(entry.Latency)
	if err != nil {
		return Fault{}, err
	}
	fault := Fault{
		Method: entry.Method, Volume: entry.Volume, Code: code, Times: entry.Times, Every: entry.Every,
		Latency: latency, Hang: entry.Hang, Disconnect: entry.Disconnect, After: entry.After, Response: entry.Response,
	}
	return fault, fault.validate()
}

// decodeStrict reads JSON and refuses unknown fields.
func decodeStrict(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// parseCode reads the name of a gRPC code, as Go spells it (NotFound) or as
// the gRPC documentation does (NOT_FOUND); no name is OK.
func parseCode(name string) (codes.Code, error) {
	if name == "" {
		return codes.OK, nil
	}
	plain := strings.ReplaceAll(name, "_", "")
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		if strings.EqualFold(code.String(), plain) {
			return code, nil
		}
	}
	return codes.OK, fmt.Errorf("unknown code %q, a known one is Unavailable", name)
}

// parseLatency reads a duration such as 100ms; none is 0.
func parseLatency(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	latency, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("read latency: %w", err)
	}
	return latency, nil
}
