package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/exeunt-io/exeunt/pkg/audit/verdict"
)

// fileError is an error in a list of volumes, with which an audit can say nothing.
type fileError struct {
	path string
	err  error
}

func (e *fileError) Error() string {
	if errors.Is(e.err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("the list of volumes %s ends in the middle of its JSON document: it is truncated, so write it again", e.path)
	}
	return fmt.Sprintf("read the list of volumes %s: %v", e.path, e.err)
}

func (e *fileError) Unwrap() error { return e.err }

// fileVolume is one volume in a file: our own format, or an entry of a ListVolumesResponse
// in the JSON form of protocol buffers.
type fileVolume struct {
	Handle  string            `json:"handle"`
	Name    string            `json:"name"`
	Age     string            `json:"age"`
	Created time.Time         `json:"creationTime"`
	Size    fileSize          `json:"size"`
	Context map[string]string `json:"context"`
	// Nodes are the nodes that the volume is attached to.
	Nodes []string `json:"nodes"`
	// Source is the handle of the volume that this volume was cloned from.
	Source string `json:"source"`

	Volume *struct {
		ID      string            `json:"volumeId"`
		Size    fileSize          `json:"capacityBytes"`
		Context map[string]string `json:"volumeContext"`
		Source  struct {
			Volume struct {
				ID string `json:"volumeId"`
			} `json:"volume"`
		} `json:"contentSource"`
	} `json:"volume"`
	Status struct {
		Nodes []string `json:"publishedNodeIds"`
	} `json:"status"`
}

// fileSize is a number of bytes, or a quantity such as 10Gi.
type fileSize int64

// UnmarshalJSON reads a number or a text.
func (s *fileSize) UnmarshalJSON(text []byte) error {
	if unquoted, err := strconv.Unquote(string(text)); err == nil {
		text = []byte(unquoted)
	}
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	quantity, err := resource.ParseQuantity(string(text))
	if err != nil {
		return fmt.Errorf("size %q is neither a number of bytes nor a quantity such as 10Gi", text)
	}
	*s = fileSize(quantity.Value())
	return nil
}

// volume returns the volume, without a handle if the file has none.
func (f fileVolume) volume() Volume {
	volume := Volume{
		Handle: f.Handle, Size: int64(f.Size), Created: f.Created, Age: f.Age, Context: f.Context,
		Attached: len(f.Nodes) > 0 || len(f.Status.Nodes) > 0, Source: f.Source,
	}
	if f.Volume != nil {
		volume.Handle, volume.Size, volume.Context = f.Volume.ID, int64(f.Volume.Size), f.Volume.Context
		volume.Source = f.Volume.Source.Volume.ID
	}
	volume.Name = cmp.Or(f.Name, verdict.Name(volume.Handle, volume.Context))
	return volume
}

// fileLister lists the volumes of a file.
type fileLister string

func (f fileLister) list(_ context.Context, begin func(), visit func(Volume)) error {
	begin()
	return ReadFile(string(f), visit)
}

// ReadFile reads a list of volumes: one JSON document that is an array of volumes, or an
// object with this array as volumes or entries. A volume has the fields handle, name, age,
// creationTime, size, context, nodes and source, of which only handle is required.
func ReadFile(path string, visit func(Volume)) error {
	file, err := os.Open(path)
	if err != nil {
		return &fileError{path, err}
	}
	defer func() { _ = file.Close() }()
	if err := readVolumes(file, visit); err != nil {
		return &fileError{path, err}
	}
	return nil
}

func readVolumes(from io.Reader, visit func(Volume)) error {
	decoder, handles := json.NewDecoder(from), set{}
	once := func(volume Volume) error {
		switch {
		case volume.Handle == "":
			return errors.New("it has no handle")
		case handles.has(volume.Handle):
			return fmt.Errorf("handle %q is listed twice", volume.Handle)
		}
		handles.add(volume.Handle)
		visit(volume)
		return nil
	}
	if err := readDocument(decoder, once); err != nil {
		if errors.Is(err, io.EOF) { // the decoder tells the end of a file in two ways
			return io.ErrUnexpectedEOF
		}
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("a second JSON document follows, want one")
	}
	return nil
}

// readDocument reads an array, or an object with an array.
func readDocument(decoder *json.Decoder, visit func(Volume) error) error {
	start, err := decoder.Token()
	switch {
	case err != nil:
		return err
	case start == json.Delim('['):
		return readArray(decoder, visit)
	case start != json.Delim('{'):
		return errors.New("want an array of volumes, or an object with the field volumes")
	}
	found := false
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		switch {
		case key == "nextToken" || key == "next_token":
			err = readToken(decoder)
		case key != "volumes" && key != "entries":
			var ignored json.RawMessage
			err = decoder.Decode(&ignored)
		case found:
			return errors.New("the field volumes is there twice")
		default:
			found = true
			err = readField(decoder, visit)
		}
		if err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return err
	}
	if !found {
		return errors.New("the object has no field volumes")
	}
	return nil
}

// readToken refuses one page of a ListVolumesResponse: further pages may have clones of its
// volumes.
func readToken(decoder *json.Decoder) error {
	var token any
	if err := decoder.Decode(&token); err != nil {
		return err
	}
	if token != nil && token != "" {
		return errors.New("it is one page of several: nextToken is set, so write all pages into one list")
	}
	return nil
}

func readField(decoder *json.Decoder, visit func(Volume) error) error {
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return cmp.Or(err, errors.New("the field volumes is no array"))
	}
	return readArray(decoder, visit)
}

// readArray reads the elements and the end of an array.
func readArray(decoder *json.Decoder, visit func(Volume) error) error {
	for number := 1; decoder.More(); number++ {
		var entry fileVolume
		if err := decoder.Decode(&entry); err != nil {
			return fmt.Errorf("volume %d: %w", number, err)
		}
		if err := visit(entry.volume()); err != nil {
			return fmt.Errorf("volume %d: %w", number, err)
		}
	}
	_, err := decoder.Token()
	return err
}

// readDetails reads what the file says about the candidates, if the driver lists the volumes.
func (s *survey) readDetails() error {
	if _, fromDriver := s.lister.(driverLister); s.File == "" || !fromDriver {
		return nil
	}
	s.details = map[string]Volume{}
	return ReadFile(s.File, func(volume Volume) {
		s.first.sources.add(volume.Source)
		if s.second.candidates.has(volume.Handle) {
			s.details[volume.Handle] = volume
		}
	})
}

// withDetails returns a volume of the driver with what the file adds: name, age, size and
// nodes.
func (s *survey) withDetails(volume Volume) Volume {
	known, found := s.details[volume.Handle]
	if !found {
		return volume
	}
	volume.driverName = volume.Name
	volume.Name, volume.Size = cmp.Or(known.Name, volume.Name), cmp.Or(volume.Size, known.Size)
	volume.Created, volume.Age = known.Created, known.Age
	volume.Attached = volume.Attached || known.Attached
	return volume
}
