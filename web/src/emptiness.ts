// SPDX-License-Identifier: Apache-2.0
/** Why there is nothing to draw: an empty picture without a reason would be read as "no stall". */

import type { Report } from "./document.ts";
import { figure } from "./scale.ts";
import type { View } from "./view.ts";

/** The reason, empty when there is something to draw. */
export function emptiness(report: Report, view: View): string {
    const also = report.notes.length ? ` ${report.notes.join(" ")}` : "";
    if (!report.timelines.length) return `Nothing to draw: the document holds no timeline, because no kernel of the run left records.${also}`;
    if (!view.lanes.length) return `Nothing to draw: no warp of this CTA left a record.${also}`;
    const isBlank = view.lanes.every((lane) => lane.isIdle || lane.isPredicted);
    if (!isBlank) return "";
    const lost = view.lanes.reduce((sum, lane) => sum + lane.row.lost, 0);
    const why = lost
        ? `${figure(lost)} records were lost, and none was kept.`
        : `${figure(view.lanes.length)} warps ran, and none of them reached a stamped wait or signal.`;
    return `Nothing to draw: ${why}${also}`;
}
