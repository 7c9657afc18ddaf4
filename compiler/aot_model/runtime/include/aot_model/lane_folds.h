/* Folds of sixteen floats, in halves, for the accumulators of c/lane_folds.py. Part of aot-model. */
#ifndef AOT_MODEL_LANE_FOLDS_H
#define AOT_MODEL_LANE_FOLDS_H

#include <math.h>

#include "aot_model/lanes.h"

/* As of scalar.h, NaN where one is, without a branch. */
AOT_MODEL_INLINE float aot_model_lanes_max(float a, float b)
{
    return aot_model_lanes_choose(aot_model_mask_if(!(a >= b)) & aot_model_mask_if(!isnan(a)), b, a);
}

AOT_MODEL_INLINE float aot_model_lanes_min(float a, float b)
{
    return aot_model_lanes_choose(aot_model_mask_if(!(a <= b)) & aot_model_mask_if(!isnan(a)), b, a);
}

#define AOT_MODEL_FOLD_OF_LANES(name, combined)                      \
    AOT_MODEL_INLINE float aot_model_##name##_of_lanes(float *lanes) \
    {                                                                \
        for (int32_t half = 8; half > 0; half /= 2) {                \
            for (int32_t lane = 0; lane < half; lane++) {            \
                const float a = lanes[lane];                         \
                const float b = lanes[half + lane];                  \
                lanes[lane] = combined;                              \
            }                                                        \
        }                                                            \
        return lanes[0];                                             \
    }
AOT_MODEL_FOLD_OF_LANES(add, a + b)
AOT_MODEL_FOLD_OF_LANES(mul, a *b)
AOT_MODEL_FOLD_OF_LANES(max, aot_model_lanes_max(a, b))
AOT_MODEL_FOLD_OF_LANES(min, aot_model_lanes_min(a, b))

#endif
