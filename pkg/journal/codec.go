package journal

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
)

// MaxEncoded is the greatest length of an encoded entry, in bytes.
const MaxEncoded = 8 << 10

// maxDecoded bounds what a forged entry can expand to, in bytes.
const maxDecoded = 1 << 20

// ErrTooLarge: an entry does not fit into MaxEncoded bytes, even with its topology cut.
var ErrTooLarge = errors.New("the request is too large for the journal")

// format is the first character of an encoded entry; it names the dictionary too.
const format = "1"

// dictionary holds what most entries have in common, so that they compress to a
// few hundred bytes. It must never change: another one needs another format.
const dictionary = `"superseded":[{"topologyCut":true,"custodyBroken":true,"unresolved":{"reason":"","since":17,"finish":true}` +
	`"cloneSource":"volumeContentSource":{"snapshot":{"snapshotId":"snap-"}}"volume":{"volumeId":"` +
	`"mutableParameters":{"iops":"throughput":"local-path","SINGLE_NODE_MULTI_WRITER"MULTI_NODE_MULTI_WRITER"MULTI_NODE_READER_ONLY` +
	`"block":{}"Block"ReadWriteMany"ReadOnlyMany"ReadWriteOncePod"Retain"kubernetes.io/aws-ebs"kubernetes.io/gce-pd` +
	`"nodeStageSecretRef":{"name":"","namespace":"kube-system"}"controllerExpandSecretRef":{"nodePublishSecretRef":{"controllerPublishSecretRef":{` +
	`"secret":{"namespace":"","name":"","uid":"` +
	`{"namespace":"default","name":"data-0","node":"node-1","state":"discarding","handle":"","request":{"name":"pvc-",` +
	`"capacityRange":{"requiredBytes":"1073741824"},"volumeCapabilities":[{"mount":{"fsType":"ext4","mountFlags":["noatime"]},"accessMode":{"mode":"SINGLE_NODE_WRITER"}}],` +
	`"parameters":{"type":"gp3","csi.storage.k8s.io/pv/name":"pvc-","csi.storage.k8s.io/pvc/name":"","csi.storage.k8s.io/pvc/namespace":""},` +
	`"accessibilityRequirements":{"requisite":[{"segments":{"topology.kubernetes.io/zone":"us-east-1a","topology.kubernetes.io/region":"","kubernetes.io/hostname":""}}],` +
	`"preferred":[{"segments":{"topology.kubernetes.io/zone":"` +
	`"volume":{"metadata":{"name":"pvc-","annotations":{"pv.kubernetes.io/provisioned-by":"csi.example.com",` +
	`"volume.kubernetes.io/provisioner-deletion-secret-name":"","volume.kubernetes.io/provisioner-deletion-secret-namespace":""},` +
	`"finalizers":["external-provisioner.volume.kubernetes.io/finalizer"]},` +
	`"spec":{"capacity":{"storage":"1Gi"},"csi":{"driver":"csi.example.com","volumeHandle":"","fsType":"ext4",` +
	`"volumeAttributes":{"storage.kubernetes.io/csiProvisionerIdentity":"17-"}},"accessModes":["ReadWriteOnce"],` +
	`"claimRef":{"kind":"PersistentVolumeClaim","namespace":"default","name":"","uid":"","apiVersion":"v1","resourceVersion":""},` +
	`"persistentVolumeReclaimPolicy":"Delete","storageClassName":"standard","volumeMode":"Filesystem"},"status":{}}}`

// Encode returns the entry as the value of an annotation. An entry that is too
// large is encoded with the topology of its request cut to one segment; if that does
// not help either, the error is [ErrTooLarge].
func Encode(e Entry) (string, error) {
	text, err := encode(e)
	if err != nil || len(text) <= MaxEncoded {
		return text, err
	}
	text, err = encode(withCutTopology(e))
	switch {
	case err != nil:
		return "", err
	case len(text) > MaxEncoded:
		return "", fmt.Errorf("claim %s/%s: %w", e.Namespace, e.Name, ErrTooLarge)
	}
	return text, nil
}

// withCutTopology returns the entry with the first preferred, or else the first
// requisite, segment of its request as the only one.
func withCutTopology(e Entry) Entry {
	requirement := e.Request.GetAccessibilityRequirements()
	segments := append(append([]*csi.Topology{}, requirement.GetPreferred()...), requirement.GetRequisite()...)
	if len(segments) == 0 {
		return e
	}
	request, _ := proto.Clone(e.Request.CreateVolumeRequest).(*csi.CreateVolumeRequest)
	request.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: segments[:1], Preferred: segments[:1]}
	e.Request, e.TopologyCut = Request{request}, true
	return e
}

func encode(e Entry) (string, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("encode entry of claim %s/%s: %w", e.Namespace, e.Name, err)
	}
	var packed bytes.Buffer
	writer, err := flate.NewWriterDict(&packed, flate.BestSpeed, []byte(dictionary))
	if err == nil {
		_, err = writer.Write(text)
	}
	if err == nil {
		err = writer.Close()
	}
	if err != nil {
		return "", fmt.Errorf("compress entry of claim %s/%s: %w", e.Namespace, e.Name, err)
	}
	return format + base64.RawStdEncoding.EncodeToString(packed.Bytes()), nil
}

// Decode returns the entry of the claim from the value of its annotation.
func Decode(claim types.UID, text string) (Entry, error) {
	e, err := decode(text)
	if err != nil {
		return Entry{}, fmt.Errorf("decode entry of claim UID %s: %w", claim, err)
	}
	e.UID = claim
	return e, nil
}

func decode(text string) (Entry, error) {
	if len(text) == 0 || text[:1] != format {
		return Entry{}, errors.New("unknown format")
	}
	packed, err := base64.RawStdEncoding.DecodeString(text[1:])
	if err != nil {
		return Entry{}, fmt.Errorf("not base64: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReaderDict(bytes.NewReader(packed), []byte(dictionary)), maxDecoded))
	if err != nil {
		return Entry{}, fmt.Errorf("not compressed: %w", err)
	}
	var e Entry
	if err := json.Unmarshal(plain, &e); err != nil {
		return Entry{}, fmt.Errorf("not an entry: %w", err)
	}
	if e.Volume == nil || e.Volume.Name == "" || e.Request.GetName() != e.Volume.Name || e.Namespace == "" || e.Name == "" {
		return Entry{}, errors.New("incomplete entry")
	}
	return e, nil
}
