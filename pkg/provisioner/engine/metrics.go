package engine

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"
)

// Collectors returns the metrics of claims and volumes for a registry.
func Collectors(counts metrics.Metrics) []prometheus.Collector {
	return []prometheus.Collector{
		counts.PersistentVolumeClaimProvisionTotal,
		counts.PersistentVolumeClaimProvisionFailedTotal,
		counts.PersistentVolumeClaimProvisionDurationSeconds,
		counts.PersistentVolumeDeleteTotal,
		counts.PersistentVolumeDeleteFailedTotal,
		counts.PersistentVolumeDeleteDurationSeconds,
	}
}
